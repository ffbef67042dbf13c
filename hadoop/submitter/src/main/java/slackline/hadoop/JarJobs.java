package slackline.hadoop;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;

/**
 * Programs that submit their jobs themselves, each in a separate JVM. A configuration directory before the cluster's on
 * the class path gives their jobs a queue, a priority, tags and properties. Properties that a program sets itself win.
 */
final class JarJobs {
  private static final String CONFIGURATION = "mapred-site.xml";

  private final Path directory;
  private final Map<Long, Child> children = new ConcurrentHashMap<>();
  private final AtomicLong last = new AtomicLong();

  private record Child(Process process, Tail said, Thread reader) {}

  JarJobs(Path directory) {
    this.directory = directory;
    Runtime.getRuntime().addShutdownHook(new Thread(
        () -> children.values().forEach(child -> Processes.killTree(child.process))));
  }

  ObjectNode start(Fields request) throws IOException {
    Path jar = Path.of(request.text("jar").replaceFirst("^file:(//)?(?=/)", "")).toAbsolutePath();
    String main = request.text("main");
    List<String> arguments = request.texts("arguments");
    Configuration conf = new Configuration(false);
    // The first file of this name hides the others, so that it has to hold all of the cluster's too.
    conf.addResource(CONFIGURATION);
    Submission.setAbout(conf, request);
    request.end();
    if (!Files.isReadable(jar)) {
      throw new Failure(Failure.Kind.INPUT, jar + " is not there, or cannot be read");
    }

    Path front = Files.createTempDirectory(directory, "jar-");
    try (OutputStream file = Files.newOutputStream(front.resolve(CONFIGURATION))) {
      conf.writeXml(file);
    }
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
    command.add("-cp");
    command.add(String.join(File.pathSeparator,
        front.toString(), System.getProperty("java.class.path"), jar.toString()));
    command.add(JarProgram.class.getName());
    command.add(main);
    command.addAll(arguments);
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    // Its standard input stays open as long as this process lives.
    process.onExit().thenRun(() -> remove(front));

    Tail said = new Tail();
    Thread reader = new Thread(() -> keep(process, said), "jar");
    reader.setDaemon(true);
    reader.start();
    long number = last.incrementAndGet();
    children.put(number, new Child(process, said, reader));
    return Fields.JSON.createObjectNode().put("process", number).put("pid", process.pid());
  }

  ObjectNode state(Fields request) throws IOException, InterruptedException {
    Child child = child(request);
    ObjectNode done = Fields.JSON.createObjectNode().put("running", child.process.isAlive());
    if (!child.process.isAlive()) {
      // What it started may still hold its output open.
      child.reader.join(TimeUnit.SECONDS.toMillis(1));
      done.put("running", false).put("exit", child.process.exitValue()).put("said", child.said.toString());
    }
    return done;
  }

  /** Kills a running program and its child processes. Jobs that it has submitted continue. */
  ObjectNode stop(Fields request) throws IOException {
    Processes.killTree(child(request).process);
    return Fields.JSON.createObjectNode();
  }

  private Child child(Fields request) throws IOException {
    long number = request.whole("process", 1, Long.MAX_VALUE);
    request.end();
    Child child = children.get(number);
    if (child == null) {
      throw Failure.refused("there is no process " + number);
    }
    return child;
  }

  private static void keep(Process process, Tail said) {
    try {
      Lines lines = new Lines(process.getInputStream(), Tail.LINE);
      for (byte[] line = lines.next(); line != null; line = lines.next()) {
        said.add(line);
      }
    } catch (IOException e) {
      // The process was killed; what it said before is kept.
    }
  }

  private static void remove(Path front) {
    try {
      Files.deleteIfExists(front.resolve(CONFIGURATION));
      Files.deleteIfExists(front);
    } catch (IOException e) {
      System.err.println("submitter: " + front + " is left: " + e.getMessage());
    }
  }
}
