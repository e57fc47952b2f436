import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/** Prints the name and the default of each ConfigProperty that a bundle of Apache Hudi holds, one a line. */
public class Defaults {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> found = new TreeMap<>();
    try (JarFile bundle = new JarFile(new File(arguments[0]))) {
      for (JarEntry entry : Collections.list(bundle.entries())) {
        String name = entry.getName();
        if (name.startsWith("org/apache/hudi/") && name.endsWith(".class")) {
          collect(name.substring(0, name.length() - ".class".length()).replace('/', '.'), found);
        }
      }
    }
    found.forEach((name, text) -> System.out.println(name + "\t" + text));
  }

  private static void collect(String className, Map<String, String> found) {
    try {
      Class<?> type = Class.forName(className, false, Defaults.class.getClassLoader());
      for (Field field : type.getDeclaredFields()) {
        if (!field.getType().getName().equals("org.apache.hudi.common.config.ConfigProperty")) continue;
        field.setAccessible(true);
        // Scala keeps its constants in the one instance of an object.
        Object owner = Modifier.isStatic(field.getModifiers()) ? null : type.getField("MODULE$").get(null);
        Object property = field.get(owner);
        Class<?> kind = property.getClass();
        boolean has = (Boolean) kind.getMethod("hasDefaultValue").invoke(property);
        String text = has ? String.valueOf(kind.getMethod("defaultValue").invoke(property)) : "-";
        found.put((String) kind.getMethod("key").invoke(property), text);
      }
    } catch (Throwable classOfAnotherEngine) {
      // Classes for engines that are not on the class path say nothing.
    }
  }
}
