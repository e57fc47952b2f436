// Makes the metadata table of a table that has none, with Apache Hudi on a local Spark; only the `files` partition.

import java.util.Properties;
import org.apache.hudi.client.common.HoodieSparkEngineContext;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.metadata.HoodieTableMetadataWriter;
import org.apache.hudi.metadata.SparkMetadataWriterFactory;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

final class CreateMetadata {
  private CreateMetadata() {}

  /** The number of metadata partitions that there are afterwards. Spark starts first, outside of what is timed. */
  static long run(String table, StorageConfiguration<?> configuration) throws Exception {
    SparkConf spark = new SparkConf().setAppName("create").setMaster("local[2]").set("spark.ui.enabled", "false");
    spark.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1");
    spark.set("spark.serializer", "org.apache.spark.serializer.KryoSerializer");
    spark.set("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar");
    JavaSparkContext context = new JavaSparkContext(spark);
    long started = System.nanoTime();
    HoodieTableMetaClient client = HoodieTableMetaClient.builder().setConf(configuration).setBasePath(table).build();
    Properties own = new Properties();
    own.setProperty("hoodie.table.name", client.getTableConfig().getTableName());
    HoodieMetadataConfig metadata =
        HoodieMetadataConfig.newBuilder().enable(true).withMetadataIndexColumnStats(false).build();
    HoodieWriteConfig config =
        HoodieWriteConfig.newBuilder().withPath(table).withProperties(own).withMetadataConfig(metadata).build();
    try (HoodieTableMetadataWriter writer = SparkMetadataWriterFactory.create(
        configuration, config, new HoodieSparkEngineContext(context), client.getTableConfig())) {
      System.out.println("{\"created_s\": " + (System.nanoTime() - started) / 1e9 + "}");
    }
    return HoodieTableMetaClient.reload(client).getTableConfig().getMetadataPartitions().size();
  }
}
