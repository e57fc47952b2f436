import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.hadoop.hive.metastore.txn.TxnStore;
import org.apache.hadoop.hive.metastore.txn.TxnUtils;

/**
 * A Hive metastore whose database has the tables of locks, which Hive's own scripts would make. Each second it ends the
 * locks that nobody renewed, which a service of Hive's compactor does otherwise.
 */
public class StartMetastore {
  public static void main(String[] arguments) throws Throwable {
    HiveConf conf = new HiveConf();
    TxnDbUtil.prepDb(conf);

    TxnStore store = TxnUtils.getTxnStore(conf);
    Thread keeper = new Thread(() -> {
      while (true) {
        store.performTimeOuts();
        try {
          Thread.sleep(1000);
        } catch (InterruptedException end) {
          return;
        }
      }
    });
    keeper.setDaemon(true);
    keeper.start();
    HiveMetaStore.main(arguments);
  }
}
