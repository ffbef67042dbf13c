package slackline.hadoop;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.VersionInfo;

/** Answers requests, one JSON object each. May be called by several threads at once. */
final class Requests {
  /** The version of the protocol. */
  static final int VERSION = 1;

  private final Configuration conf;
  private final Applications applications;
  private final FileVerbs files;
  private final JarJobs jars;

  /** `directory` holds the configurations of running jar jobs. */
  Requests(Configuration site, Path directory) {
    conf = new Configuration(site);
    // The client waits for the answer; by default Hadoop notices a dead daemon after 15 minutes.
    conf.setInt("ipc.client.connect.max.retries", 1);
    conf.setInt("ipc.client.connect.max.retries.on.timeouts", 1);
    conf.setInt("ipc.client.connect.timeout", 10_000);
    conf.setInt("yarn.resourcemanager.connect.max-wait.ms", 3_000);
    conf.setInt("yarn.resourcemanager.connect.retry-interval.ms", 1_000);
    applications = new Applications(site, conf);
    files = new FileVerbs(conf);
    jars = new JarJobs(directory);
  }

  /** The answer to a line, valid or not. */
  ObjectNode answer(byte[] line) {
    ObjectNode answer = Fields.JSON.createObjectNode().putNull("id");
    Failure.Kind otherwise = Failure.Kind.OTHER;
    try {
      Fields request = Fields.of(line);
      answer.put("id", request.whole("id", Long.MIN_VALUE, Long.MAX_VALUE));
      String verb = request.text("do");
      otherwise = usualFailure(verb);
      Security.check(conf);
      answer.set("done", done(verb, request));
    } catch (Throwable e) { // the client waits for an answer, so every failure is one
      answer.set("failed", failed(Failure.of(e, otherwise)));
    }
    return answer;
  }

  static ObjectNode failed(Failure failure) {
    return Fields.JSON.createObjectNode().put("kind", failure.kind.toString()).put("message", failure.getMessage());
  }

  private ObjectNode done(String verb, Fields request) throws Exception {
    return switch (verb) {
      case "about" -> about(request);
      case "submit" -> applications.submit(request);
      case "kill" -> applications.kill(request);
      case "jar" -> jars.start(request);
      case "process" -> jars.state(request);
      case "stop" -> jars.stop(request);
      case "list" -> files.list(request);
      case "stat" -> files.stat(request);
      case "read" -> files.read(request);
      case "write" -> files.write(request);
      case "delete" -> files.delete(request);
      case "rename" -> files.rename(request);
      case "mkdirs" -> files.mkdirs(request);
      default -> throw Failure.refused("unknown verb \"" + verb + "\", expected about, submit, kill, jar, process, "
          + "stop, list, stat, read, write, delete, rename or mkdirs");
    };
  }

  private ObjectNode about(Fields request) throws Exception {
    request.end();
    return Fields.JSON.createObjectNode()
        .put("version", VERSION)
        .put("hadoop", VersionInfo.getVersion())
        .put("default_fs", FileSystem.getDefaultUri(conf).toString())
        .put("user", UserGroupInformation.getCurrentUser().getShortUserName())
        .put("framework", Applications.framework(conf));
  }

  private static Failure.Kind usualFailure(String verb) {
    return switch (verb) {
      case "list", "stat", "read" -> Failure.Kind.INPUT;
      case "write", "delete", "rename", "mkdirs" -> Failure.Kind.OUTPUT;
      default -> Failure.Kind.OTHER;
    };
  }
}
