package slackline.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.JobConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class RequestsTest {
  @TempDir
  Path directory;

  private JsonNode answer(String line) {
    return answer(new JobConf(), line);
  }

  private JsonNode answer(Configuration conf, String line) {
    return new Requests(conf, directory).answer(line.getBytes(StandardCharsets.UTF_8));
  }

  private JsonNode done(String fields) {
    JsonNode answer = answer("{\"id\":1," + fields.replace("DIR", directory.toString()) + "}");
    assertTrue(answer.has("done"), answer::toString);
    return answer.get("done");
  }

  private void checkFailed(String fields, String kind, String part) {
    JsonNode answer = answer("{\"id\":1," + fields.replace("DIR", directory.toString()) + "}");
    assertEquals(kind, answer.at("/failed/kind").asText(), answer::toString);
    assertTrue(answer.at("/failed/message").asText().contains(part), answer::toString);
  }

  private static String base64(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void malformed_lines_are_refused_with_what_was_expected() {
    for (String line : List.of("", "{", "[]", "7", "{}", "{\"id\":1.5}", "{\"id\":1,\"id\":2}", "{\"id\":1} {}", "\0")) {
      JsonNode answer = answer(line);
      assertTrue(answer.get("id").isNull(), line);
      assertEquals("refused", answer.at("/failed/kind").asText(), line);
    }
    checkFailed("\"do\":\"dance\"", "refused", "unknown verb \"dance\", expected about");
    checkFailed("\"do\":\"about\",\"now\":true", "refused", "unknown field \"now\", expected do, id");
    checkFailed("\"do\":\"read\",\"path\":\"/x\",\"offset\":-1,\"length\":5", "refused",
        "\"offset\" must be a whole number from 0");
    checkFailed("\"do\":\"stat\",\"path\":\"\"", "refused", "\"path\" is no path");
    checkFailed("\"do\":\"kill\",\"application\":\"job_1\"", "refused", "application_1700000000000_0001");
    checkFailed("\"do\":\"process\",\"process\":3", "refused", "no process 3");
  }

  @Test
  void files_are_written_listed_read_renamed_and_deleted() throws IOException {
    for (String name : List.of("b", "a", "ä", "B")) {
      done("\"do\":\"write\",\"path\":\"file:///DIR/in/" + name + "\",\"base64\":\"" + base64("of " + name) + "\"");
    }
    done("\"do\":\"write\",\"path\":\"DIR/in/a\",\"base64\":\"" + base64("next") + "\"");
    done("\"do\":\"mkdirs\",\"path\":\"DIR/in/sub/sub\"");
    Files.writeString(directory.resolve("local"), "local");
    done("\"do\":\"write\",\"path\":\"DIR/in/ä\",\"local\":\"DIR/local\"");
    checkFailed("\"do\":\"write\",\"path\":\"DIR/x\",\"local\":\"DIR/none\"", "input", "none");
    checkFailed("\"do\":\"write\",\"path\":\"DIR/x\",\"base64\":\"?\"", "refused", "not base64");

    List<String> listed = new ArrayList<>();
    done("\"do\":\"list\",\"path\":\"DIR/in\"").get("entries").forEach(entry -> listed.add(
        entry.get("path").asText().replace("file://" + directory + "/in/", "") + " " + entry.get("length")));
    assertEquals(List.of("B 4", "a 4", "b 4", "sub 0", "ä 5"), listed);
    assertEquals(2, done("\"do\":\"list\",\"path\":\"DIR/in/[ab]\"").get("entries").size());
    assertEquals(1, done("\"do\":\"list\",\"path\":\"DIR/i*\"").get("entries").size());
    assertEquals(0, done("\"do\":\"list\",\"path\":\"DIR/in/*.gz\"").get("entries").size());
    checkFailed("\"do\":\"list\",\"path\":\"DIR/none\"", "input", "none");

    assertEquals(base64("ext"),
        done("\"do\":\"read\",\"path\":\"DIR/in/a\",\"offset\":1,\"length\":100").get("base64").asText());
    assertEquals("", done("\"do\":\"read\",\"path\":\"DIR/in/a\",\"offset\":9,\"length\":1").get("base64").asText());
    checkFailed("\"do\":\"read\",\"path\":\"DIR/none\",\"offset\":0,\"length\":1", "input", "none");
    checkFailed("\"do\":\"read\",\"path\":\"DIR/in\",\"offset\":0,\"length\":1", "input", "is a directory");

    checkFailed("\"do\":\"rename\",\"from\":\"DIR/in/a\",\"to\":\"DIR/in/b\"", "output", "already exists");
    done("\"do\":\"rename\",\"from\":\"DIR/in/a\",\"to\":\"DIR/in/c\"");
    assertTrue(done("\"do\":\"stat\",\"path\":\"DIR/in/a\"").get("entry").isNull());
    assertEquals(4, done("\"do\":\"stat\",\"path\":\"DIR/in/c\"").at("/entry/length").asInt());

    done("\"do\":\"delete\",\"path\":\"DIR/in\"");
    done("\"do\":\"delete\",\"path\":\"DIR/in\"");
    assertFalse(Files.exists(directory.resolve("in")));
    for (String root : List.of("/", "file:///", "/a/..", "/../..")) {
      checkFailed("\"do\":\"delete\",\"path\":\"" + root + "\"", "refused", "root");
    }
  }

  @Test
  void nothing_is_left_beside_a_file_that_is_written() throws IOException {
    done("\"do\":\"write\",\"path\":\"DIR/in/a\",\"base64\":\"YQ==\"");
    checkFailed("\"do\":\"write\",\"path\":\"DIR/in\",\"base64\":\"YQ==\"", "output", "in");
    try (var names = Files.list(directory)) {
      assertEquals(List.of(directory.resolve("in")), names.toList());
    }
    try (var names = Files.list(directory.resolve("in"))) {
      assertEquals(List.of(directory.resolve("in/a")), names.toList());
    }
  }

  @Test
  void a_cluster_with_kerberos_or_encryption_is_refused_with_what_is_missing() {
    for (String[] setting : new String[][] {{"hadoop.security.authentication", "kerberos", "delegation tokens"},
        {"hadoop.rpc.protection", "privacy", "expected authentication"},
        {"yarn.http.policy", "HTTPS_ONLY", "no TLS"}}) {
      JobConf conf = new JobConf();
      conf.set(setting[0], setting[1]);
      JsonNode answer = answer(conf, "{\"id\":1,\"do\":\"about\"}");
      assertEquals("security", answer.at("/failed/kind").asText(), answer::toString);
      assertTrue(answer.at("/failed/message").asText().contains(setting[2]), answer::toString);
    }
  }

  @Test
  void what_runs_jobs_is_known_before() {
    assertEquals("local", done("\"do\":\"about\"").get("framework").asText());
  }

  @Test
  void a_job_is_refused_without_a_cluster() {
    checkFailed("\"do\":\"submit\",\"job\":{}", "refused", "mapreduce.framework.name is local, expected yarn");
  }

  @Test
  @Timeout(120)
  void a_jar_runs_in_a_process_whose_jobs_have_its_queue_and_tags() throws Exception {
    Requests requests = new Requests(new JobConf(), directory);
    String line = "{\"id\":1,\"do\":\"jar\",\"jar\":\"file://" + directory + "\",\"main\":\"slackline.hadoop.FakeMain\","
        + "\"arguments\":[\"a b\",\"c\"],\"queue\":\"q\",\"priority\":7,\"tags\":[\"t=1\",\"u\"],"
        + "\"properties\":{\"k\":\"<&>\"}}";
    JsonNode started = requests.answer(line.getBytes(StandardCharsets.UTF_8));
    assertEquals(1, started.at("/done/process").asInt(), started::toString);
    JsonNode state;
    do {
      Thread.sleep(50);
      state = requests.answer("{\"id\":2,\"do\":\"process\",\"process\":1}".getBytes(StandardCharsets.UTF_8)).get("done");
    } while (state.get("running").asBoolean());
    assertEquals(4, state.get("exit").asInt());
    List<String> said = state.get("said").asText().lines().toList();
    assertEquals(List.of("mapreduce.job.queuename q", "mapreduce.job.priority 7", "mapreduce.job.tags t=1,u", "k <&>",
        "slackline.site <&> of the site", "a b|c"), said.subList(said.size() - 6, said.size()));
  }

  @Test
  @Timeout(120)
  void the_program_of_a_jar_reads_nothing_and_ends_with_its_submitter() throws Exception {
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
    Path socket = directory.resolve("socket");
    Process submitter = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"), "slackline.hadoop.Submitter",
        "--socket", socket.toString()).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    try {
      assertEquals("ready 1", submitter.inputReader().readLine());
      try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
        String line = "{\"id\":1,\"do\":\"jar\",\"jar\":\"" + directory + "\",\"main\":\"slackline.hadoop.FakeMain\","
            + "\"arguments\":[\"read-and-wait\",\"" + directory + "/read\"],\"tags\":[],\"properties\":{}}\n";
        channel.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8)));
        BufferedReader answers = new BufferedReader(Channels.newReader(channel, StandardCharsets.UTF_8));
        ProcessHandle program = ProcessHandle.of(
            Fields.JSON.readTree(answers.readLine()).at("/done/pid").asLong()).orElseThrow();
        while (Files.notExists(directory.resolve("read"))) {
          assertTrue(program.isAlive());
          Thread.sleep(50);
        }
        // By SIGKILL, so the submitter cannot clean up.
        submitter.destroyForcibly();
        program.onExit().get();
      }
    } finally {
      submitter.destroyForcibly();
    }
  }

  @Test
  @Timeout(120)
  void a_jar_that_is_stopped_is_killed() throws Exception {
    Requests requests = new Requests(new JobConf(), directory);
    String line = "{\"id\":1,\"do\":\"jar\",\"jar\":\"" + directory + "\",\"main\":\"slackline.hadoop.FakeMain\","
        + "\"arguments\":[\"wait\"],\"tags\":[],\"properties\":{}}";
    JsonNode started = requests.answer(line.getBytes(StandardCharsets.UTF_8));
    assertEquals(1, started.at("/done/process").asInt(), started::toString);
    // Twice is as well as once.
    for (int i = 0; i < 2; i++) {
      JsonNode stopped = requests.answer("{\"id\":2,\"do\":\"stop\",\"process\":1}".getBytes(StandardCharsets.UTF_8));
      assertTrue(stopped.has("done"), stopped::toString);
    }
    JsonNode state;
    do {
      Thread.sleep(50);
      state = requests.answer("{\"id\":3,\"do\":\"process\",\"process\":1}".getBytes(StandardCharsets.UTF_8)).get("done");
    } while (state.get("running").asBoolean());
    assertEquals(128 + 9, state.get("exit").asInt());
  }
}
