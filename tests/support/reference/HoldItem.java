import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.amazonaws.services.dynamodbv2.model.LockNotGrantedException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/**
 * AWS's lock client, set up as Apache Hudi's DynamoDBBasedLockProvider does, that does what it is told: lines
 * "take MILLISECONDS", "release". Arguments: endpoint, table, key, milliseconds of a lease.
 */
public class HoldItem {
  public static void main(String[] arguments) throws Exception {
    DynamoDbClient dynamo = DynamoDbClient.builder()
        .endpointOverride(URI.create(arguments[0])).httpClient(UrlConnectionHttpClient.create()).build();
    long lease = Long.parseLong(arguments[3]);
    AmazonDynamoDBLockClient client = new AmazonDynamoDBLockClient(
        AmazonDynamoDBLockClientOptions.builder(dynamo, arguments[1]).withTimeUnit(TimeUnit.MILLISECONDS)
            .withLeaseDuration(lease).withHeartbeatPeriod(lease / 3).withCreateHeartbeatBackgroundThread(true).build());
    System.out.println("ready");

    LockItem held = null;
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      if (line.startsWith("take ")) {
        try {
          held = client.acquireLock(AcquireLockOptions.builder(arguments[2])
              .withAdditionalTimeToWaitForLock(Long.parseLong(line.substring(5))).withTimeUnit(TimeUnit.MILLISECONDS)
              .build());
          System.out.println("held");
        } catch (LockNotGrantedException refusal) {
          System.out.println("refused");
        }
      } else {
        client.releaseLock(held);
        System.out.println("released");
      }
    }
  }
}
