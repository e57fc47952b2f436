// One question to Apache Hudi's metadata table: first in a fresh virtual machine, then again and again in the warm one.
//
// java -cp <bundle>:<Spark's jars>:<classes> MetadataProbe TABLE QUESTION ARGUMENT REPEATS
//
// QUESTION: partitions; files (ARGUMENT: a partition); all; query (ARGUMENT: a partition); keys (ARGUMENT: a file
// with a record key a line); create. Answers with one line of JSON: seconds from the start of the first call, of each
// later one, and what was counted.

import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.data.HoodieListData;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.engine.HoodieLocalEngineContext;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.view.FileSystemViewManager;
import org.apache.hudi.common.table.view.HoodieTableFileSystemView;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.metadata.HoodieBackedTableMetadata;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.HoodieStorageUtils;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.StoragePathInfo;

public final class MetadataProbe {
  private static final HoodieMetadataConfig ENABLED = HoodieMetadataConfig.newBuilder().enable(true).build();

  private interface Question {
    long count() throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    String table = arguments[0];
    String argument = arguments[2];
    int repeats = Integer.parseInt(arguments[3]);
    List<String> keys = arguments[1].equals("keys") ? Files.readAllLines(Paths.get(argument)) : new ArrayList<>();
    StorageConfiguration<?> configuration = HadoopFSUtils.getStorageConf(new Configuration());
    long started = System.nanoTime();
    Question question = open(table, arguments[1], argument, keys, configuration);
    long count = question.count();
    double firstS = since(started);
    List<String> warm = new ArrayList<>();
    for (int number = 0; number < repeats; number++) {
      long again = System.nanoTime();
      if (question.count() != count) {
        throw new IllegalStateException("another answer the second time");
      }
      warm.add(Double.toString(since(again)));
    }
    System.out.println(
        "{\"first_s\": " + firstS + ", \"warm_s\": [" + String.join(", ", warm) + "], \"count\": " + count + "}");
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private static Question open(
      String table, String name, String argument, List<String> keys, StorageConfiguration<?> configuration) {
    HoodieEngineContext context = new HoodieLocalEngineContext(configuration);
    if (name.equals("query")) {
      return () -> query(table, argument, context, configuration);
    }
    if (name.equals("create")) {
      return () -> CreateMetadata.run(table, configuration);
    }
    HoodieStorage storage = HoodieStorageUtils.getStorage(table, configuration);
    HoodieBackedTableMetadata metadata = new HoodieBackedTableMetadata(context, storage, ENABLED, table, true);
    switch (name) {
      case "partitions":
        return () -> metadata.getAllPartitionPaths().size();
      case "files":
        return () -> metadata.getAllFilesInPartition(new StoragePath(table, argument)).size();
      case "all":
        return () -> allFiles(metadata, table);
      case "keys":
        return () -> metadata.readRecordIndexLocationsWithKeys(HoodieListData.eager(keys)).count();
      default:
        throw new IllegalArgumentException(name);
    }
  }

  private static long allFiles(HoodieBackedTableMetadata metadata, String table) throws Exception {
    List<String> paths =
        metadata.getAllPartitionPaths().stream().map(name -> table + "/" + name).collect(Collectors.toList());
    Map<String, List<StoragePathInfo>> found = metadata.getAllFilesInPartitions(paths);
    return found.values().stream().mapToLong(List::size).sum();
  }

  private static long query(
      String table, String partition, HoodieEngineContext context, StorageConfiguration<?> configuration) {
    HoodieTableMetaClient client =
        HoodieTableMetaClient.builder().setConf(configuration).setBasePath(table).build();
    HoodieTableFileSystemView view = FileSystemViewManager.createInMemoryFileSystemView(context, client, ENABLED);
    try {
      return view.getLatestFileSlices(partition).count();
    } finally {
      view.close();
    }
  }

  private static double since(long started) {
    return (System.nanoTime() - started) / 1e9;
  }
}
