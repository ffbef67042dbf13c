package slackline.hadoop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.mapreduce.TaskInputOutputContext;
import org.apache.hadoop.mapreduce.counters.LimitExceededException;

/**
 * An attempt of a task: its worker, and what it leaves in DESTINATION/ATTEMPT: `begun.json`, written when it begins;
 * `part`, the part file of a reduce or of a map without reduces; and, written last, `report.json`.
 */
final class Attempt implements AutoCloseable {
  /** Between two signs of life, seconds. */
  private static final int PROGRESS_SECONDS = 10;
  /** How long a worker may take to end when it has reported, and what it said may take to come, seconds. */
  private static final int END_SECONDS = 30;
  private static final int SAID_SECONDS = 5;

  /** Takes a blob of a partition. */
  interface Blobs {
    void take(int partition, byte[] blob) throws IOException, InterruptedException;
  }

  private final TaskInputOutputContext<?, ?, ?, ?> context;
  private final Configuration conf;
  private final Path directory;
  private final long started = System.currentTimeMillis();
  private final ScheduledExecutorService ticks = Executors.newSingleThreadScheduledExecutor(action -> {
    Thread thread = new Thread(action, "progress");
    thread.setDaemon(true);
    return thread;
  });
  private final Tail said = new Tail();
  private final Thread hook = new Thread(this::kill, "kill-worker");
  private volatile Process worker;
  private Thread listener;
  private FSDataOutputStream part;
  private JsonNode report;

  Attempt(TaskInputOutputContext<?, ?, ?, ?> context) {
    this.context = context;
    conf = context.getConfiguration();
    directory = new Path(conf.get(Submission.DESTINATION), context.getTaskAttemptID().toString());
    ticks.scheduleAtFixedRate(context::progress, PROGRESS_SECONDS, PROGRESS_SECONDS, TimeUnit.SECONDS);
  }

  /** Makes its directory, but none above: what is written late must not make again what was cleared away. */
  void begin() throws IOException {
    FileContext.getFileContext(directory.toUri(), conf).mkdir(directory, FsPermission.getDirDefault(), false);
  }

  /** Says that it begins, and starts the worker, in the working directory of the container. */
  Process start(String phase, List<String> more) throws IOException {
    write("begun.json", identity());
    boolean hasPart = phase.equals("reduce") || context.getNumReduceTasks() == 0;
    if (hasPart) {
      part = FileVerbs.create(new Path(directory, "part"), conf);
    }
    Files.createDirectories(java.nio.file.Path.of(Submission.WORK));
    List<String> command = new ArrayList<>(List.of(
        "./" + Submission.WORKER_NAME, "container", phase,
        "--spec", Submission.SPEC_NAME,
        "--task", String.valueOf(context.getTaskAttemptID().getTaskID().getId()),
        "--attempt", String.valueOf(context.getTaskAttemptID().getId()),
        "--directory", Submission.WORK));
    command.addAll(more);
    Runtime.getRuntime().addShutdownHook(hook);
    worker = new ProcessBuilder(command).start();
    listener = new Thread(this::listen, "worker-errors");
    listener.setDaemon(true);
    listener.start();
    return worker;
  }

  /** Takes what the worker writes, up to its end. */
  void read(Blobs blobs) throws IOException, InterruptedException {
    DataInputStream input = new DataInputStream(new BufferedInputStream(worker.getInputStream(), 1 << 16));
    for (Frame frame = Frame.read(input); frame != null; frame = Frame.read(input)) {
      if (report != null) {
        throw new IOException("the worker wrote a frame behind its report");
      }
      if (frame.tag() == Frame.REPORT) {
        report = Fields.JSON.readTree(frame.bytes());
      } else if (frame.tag() != Frame.PART) {
        blobs.take(frame.tag(), frame.bytes());
      } else if (part != null) {
        part.write(frame.bytes());
      } else {
        throw new IOException("the worker of a map wrote a part file, but its job has reduces");
      }
    }
  }

  /**
   * Writes the report. Throws if the attempt failed, with the worker's words, or if it took not all of its input, for
   * the reason `broken`.
   */
  void end(IOException broken) throws IOException, InterruptedException {
    if (!worker.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
      throw new IOException("the worker has closed its output, but does not end");
    }
    listener.join(TimeUnit.SECONDS.toMillis(SAID_SECONDS));
    if (report == null || worker.exitValue() != 0) {
      throw new IOException("the worker ended with exit code " + worker.exitValue()
          + (report == null ? " and without a report; " : "; ") + "it said last:\n" + said);
    }
    JsonNode failed = report.get("failed");
    if (failed == null && !report.has("done")) {
      throw new IOException("the worker's report must have \"done\" or \"failed\"");
    }
    if (failed == null && broken != null) {
      throw broken;
    }
    if (part != null) {
      part.hsync();
      part.close();
    }
    write();
    if (failed != null) {
      throw new IOException(failed.path("message").asText("the worker failed and gave no reason"));
    }
  }

  /** Leaves a report of a failure that another attempt would have too. */
  void giveUp(String message) throws IOException {
    ObjectNode failed = Fields.JSON.createObjectNode().put("message", message).put("is_final", true);
    report = Fields.JSON.createObjectNode().set("failed", failed);
    write();
  }

  /** Writes the report. */
  private void write() throws IOException {
    ObjectNode envelope = identity()
        .put("ended", System.currentTimeMillis())
        .put("attempt", context.getTaskAttemptID().toString());
    envelope.set("report", report);
    write("report.json", envelope);
  }

  /** Where it runs, and since when. */
  private ObjectNode identity() {
    return Fields.JSON.createObjectNode()
        .put("container", System.getenv("CONTAINER_ID"))
        .put("host", System.getenv("NM_HOST"))
        .put("started", started);
  }

  /** Writes a document as a whole. */
  private void write(String name, ObjectNode content) throws IOException {
    byte[] document = Fields.JSON.writeValueAsBytes(content);
    FileVerbs.replace(new Path(directory, name), conf, output -> output.write(document));
  }

  /** Ends the worker, if it has not ended, with what its commands started. */
  void kill() {
    Process process = worker;
    if (process != null) {
      Processes.killTree(process);
    }
  }

  @Override
  public void close() throws IOException {
    ticks.shutdownNow();
    kill();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The JVM ends: the hook runs.
    }
    if (part != null) {
      part.close();
    }
  }

  private void listen() {
    try {
      Lines lines = new Lines(worker.getErrorStream(), Tail.LINE);
      for (byte[] line = lines.next(); line != null; line = lines.next()) {
        if (!hasReported(new String(line, StandardCharsets.UTF_8))) {
          said.add(line);
          System.err.write(line, 0, line.length);
          if (!lines.isCut()) {
            System.err.write('\n');
          }
          System.err.flush();
        }
      }
    } catch (IOException e) {
      // The worker was killed.
    }
  }

  /** Takes `reporter:counter:GROUP,NAME,AMOUNT` and `reporter:status:TEXT`, as Hadoop Streaming does. */
  private boolean hasReported(String line) {
    String text = line.stripTrailing();
    if (text.startsWith("reporter:status:")) {
      context.setStatus(text.substring("reporter:status:".length()));
      return true;
    }
    if (!text.startsWith("reporter:counter:")) {
      return false;
    }
    String[] fields = text.substring("reporter:counter:".length()).split(",", -1);
    try {
      if (fields.length == 3) {
        context.getCounter(fields[0], fields[1]).increment(Long.parseLong(fields[2].strip()));
        return true;
      }
    } catch (NumberFormatException e) {
      // It is a text like any other.
    } catch (LimitExceededException e) {
      // More counters than the cluster allows. The report has them all.
    }
    return false;
  }
}
