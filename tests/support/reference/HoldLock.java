import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/** A lock provider of Apache Hudi that does what it is told: lines "take MILLISECONDS", "release". */
public class HoldLock {
  public static void main(String[] arguments) throws Exception {
    TypedProperties properties = new TypedProperties();
    for (int at = 1; at < arguments.length; at++) {
      int equals = arguments[at].indexOf('=');
      properties.setProperty(arguments[at].substring(0, equals), arguments[at].substring(equals + 1));
    }
    LockProvider<?> provider = (LockProvider<?>) Class.forName(arguments[0])
        .getConstructor(LockConfiguration.class, StorageConfiguration.class)
        .newInstance(new LockConfiguration(properties), new HadoopStorageConfiguration(new Configuration()));
    System.out.println("ready");

    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      if (line.startsWith("take ")) {
        boolean isHeld;
        try {
          isHeld = provider.tryLock(Long.parseLong(line.substring(5)), TimeUnit.MILLISECONDS);
        } catch (Exception refusal) {
          isHeld = false;
        }
        System.out.println(isHeld ? "held" : "refused");
      } else {
        provider.unlock();
        System.out.println("released");
      }
    }
  }
}
