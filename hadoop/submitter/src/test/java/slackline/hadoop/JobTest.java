package slackline.hadoop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Whole jobs, in Hadoop's local runner, with a worker that only speaks as one. */
@Timeout(120)
class JobTest {
  private static final int MAPS = 11;

  @TempDir
  Path directory;

  @BeforeEach
  void files() throws IOException {
    try (InputStream worker = JobTest.class.getResourceAsStream("/fake-worker")) {
      Files.copy(worker, directory.resolve("worker"));
    }
    assertTrue(directory.resolve("worker").toFile().setExecutable(true));
    Files.writeString(directory.resolve("extra"), "");
    Files.createDirectory(directory.resolve("out"));
    pieces(MAPS);
  }

  private void pieces(int maps) throws IOException {
    String lines = String.join("", IntStream.range(0, maps).mapToObj(
        map -> (map % 2 == 0 ? "" : "h" + map + ",other") + "\t[{\"path\":\"file:///in\",\"offset\":" + map
            + ",\"length\":" + (map * 7 % 5) + ",\"input\":0}]\n").toList());
    Files.writeString(directory.resolve("job.pieces"), lines);
  }

  private Job job(String what, int reducers, int maps) throws IOException {
    return job(new JobConf(), what, reducers, maps);
  }

  private Job job(JobConf conf, String what, int reducers, int maps) throws IOException {
    Files.writeString(directory.resolve("job.json"), what + "\n");
    conf.set("mapreduce.framework.name", "local");
    conf.set("hadoop.tmp.dir", directory.resolve("tmp").toString());
    conf.set("mapreduce.jobtracker.staging.root.dir", directory.resolve("staging").toString());
    conf.setInt("mapreduce.client.completion.pollinterval", 20);
    ObjectNode request = Fields.JSON.createObjectNode().put("name", "flow/job").put("queue", "q").put("priority", 12)
        .put("spec", "file://" + directory + "/job.json").put("pieces", directory + "/job.pieces")
        .put("worker", "file://" + directory + "/worker").put("destination", "file://" + directory + "/out")
        .put("maps", maps).put("reducers", reducers).put("attempts", 2).put("memory_mb", 512).put("cores", 1);
    request.putArray("tags").add("slackline.run=1").add("slackline.job=2");
    request.putArray("files").add("file://" + directory + "/extra#some-name");
    request.putObject("properties").put("mapreduce.map.speculative", "true").put("mapreduce.job.queuename", "other");
    return Submission.job(conf, Fields.of(Fields.JSON.writeValueAsBytes(request)));
  }

  @Test
  void jobs_of_one_site_share_no_credentials() throws IOException {
    JobConf site = new JobConf();
    Job first = job(site, "go", 1, 1);
    Job second = job(site, "go", 1, 1);
    first.getCredentials().addSecretKey(new Text("key"), new byte[] {1});
    assertEquals(0, second.getCredentials().numberOfSecretKeys());
  }

  private List<Path> attempts(String kind) throws IOException {
    try (var names = Files.list(directory.resolve("out"))) {
      return names.filter(path -> path.getFileName().toString().contains("_" + kind + "_")).sorted().toList();
    }
  }

  /** Takes away what attempts have left. */
  private void clear() throws IOException {
    Files.move(directory.resolve("out"), Files.createTempDirectory(directory, "before").resolve("out"));
    Files.createDirectory(directory.resolve("out"));
  }

  private static JsonNode report(Path attempt) throws IOException {
    return document(attempt, "report.json");
  }

  private static JsonNode document(Path attempt, String name) throws IOException {
    return Fields.JSON.readTree(Files.readAllBytes(attempt.resolve(name)));
  }

  private static List<String> names(JsonNode document) {
    List<String> names = new ArrayList<>();
    document.fieldNames().forEachRemaining(names::add);
    return names;
  }

  @Test
  void each_reduce_gets_the_blobs_of_its_partition_in_the_order_of_maps() throws Exception {
    Job job = job("go", 2, MAPS);
    assertTrue(job.waitForCompletion(false));
    assertEquals(MAPS, attempts("m").size());
    assertEquals(2, attempts("r").size());
    for (int partition = 0; partition < 2; partition++) {
      Path attempt = attempts("r").get(partition);
      List<String> found = new ArrayList<>();
      try (DataInputStream part = new DataInputStream(Files.newInputStream(attempt.resolve("part")))) {
        for (Frame frame = Frame.read(part); frame != null; frame = Frame.read(part)) {
          found.add(frame.tag() + ": " + new String(frame.bytes(), StandardCharsets.UTF_8));
        }
      }
      List<String> expected = new ArrayList<>();
      for (int map = 0; map < MAPS; map++) {
        for (String blob : List.of("first", "second")) {
          expected.add(map + ": map " + map + ", attempt 0, partition " + partition + ", " + blob + "\n");
        }
      }
      assertEquals(expected, found);
      try (var names = Files.list(attempt)) {
        assertEquals(List.of("begun.json", "part", "report.json"),
            names.map(name -> name.getFileName().toString()).sorted().toList());
      }
    }
    JsonNode report = report(attempts("m").get(3));
    assertEquals("{\"done\":{\"records\":5}}", report.get("report").toString());
    assertEquals(attempts("m").get(3).getFileName().toString(), report.get("attempt").asText());
    assertTrue(report.get("started").asLong() <= report.get("ended").asLong());
    JsonNode begun = document(attempts("m").get(3), "begun.json");
    assertEquals(List.of("container", "host", "started"), names(begun));
    assertEquals(report.get("started"), begun.get("started"));
    assertFalse(Files.exists(attempts("m").get(3).resolve("part")));
    assertEquals(MAPS + 2, job.getCounters().findCounter("Fake", "attempts").getValue());
  }

  @Test
  void a_job_without_reduces_leaves_a_part_of_each_map() throws Exception {
    assertTrue(job("map-only", 0, MAPS).waitForCompletion(false));
    List<String> lines = Files.readAllLines(directory.resolve("job.pieces"));
    for (int map = 0; map < MAPS; map++) {
      assertEquals(lines.get(map) + "\n", Files.readString(attempts("m").get(map).resolve("part")));
    }
  }

  @Test
  void a_failed_report_is_kept_and_fails_the_job() throws Exception {
    pieces(2);
    Job job = job("fail", 2, 2);
    assertFalse(job.waitForCompletion(false));
    assertEquals("the mapper made a mistake\nin line 7",
        report(attempts("m").get(0)).at("/report/failed/message").asText());
  }

  /** The local file system under another name, so that only Hadoop can read it. */
  public static final class Elsewhere extends RawLocalFileSystem {
    @Override
    public URI getUri() {
      return URI.create("elsewhere:///");
    }

    @Override
    public String getScheme() {
      return "elsewhere";
    }
  }

  @Test
  void an_input_that_was_changed_fails_its_map_for_good() throws Exception {
    Path input = Files.writeString(directory.resolve("in"), "a\n");
    long then = Files.getLastModifiedTime(input).toMillis();
    String piece = "\t[{\"path\":\"elsewhere://" + input + "\",\"offset\":0,\"length\":null,\"input\":0,"
        + "\"source\":{\"bytes\":2,\"modified\":%d}}]\n";
    JobConf conf = new JobConf();
    conf.setClass("fs.elsewhere.impl", Elsewhere.class, FileSystem.class);
    Files.writeString(directory.resolve("job.pieces"), piece.formatted(then * 1_000));
    assertTrue(job(conf, "map-only", 0, 1).waitForCompletion(false));
    clear();
    Files.writeString(directory.resolve("job.pieces"), piece.formatted((then + 1) * 1_000));
    assertFalse(job(conf, "map-only", 0, 1).waitForCompletion(false));
    JsonNode failed = report(attempts("m").get(0)).at("/report/failed");
    assertTrue(failed.get("is_final").asBoolean());
    assertEquals("input elsewhere:" + input + ": it changed after the run found or made it; "
        + "pass --again to start over", failed.get("message").asText());
  }

  @Test
  void a_reduce_that_ends_before_it_has_read_its_input_fails_with_the_better_reason() throws Exception {
    pieces(2);
    assertFalse(job("deaf-and-failed", 2, 2).waitForCompletion(false));
    assertEquals("no space", report(attempts("r").get(0)).at("/report/failed/message").asText());
    clear();
    assertFalse(job("deaf-and-done", 2, 2).waitForCompletion(false));
    assertFalse(Files.exists(attempts("r").get(0).resolve("report.json")));
  }

  @Test
  void an_attempt_does_not_make_the_directory_of_its_submission() throws Exception {
    pieces(1);
    Files.delete(directory.resolve("out"));
    assertFalse(job("map-only", 0, 1).waitForCompletion(false));
    assertFalse(Files.exists(directory.resolve("out")));
  }

  @Test
  void a_worker_that_dies_or_writes_nonsense_fails_the_job_without_a_report() throws Exception {
    pieces(2);
    for (String what : List.of("crash", "astray")) {
      assertFalse(job(what, 2, 2).waitForCompletion(false), what);
    }
    assertFalse(job("go", 0, 2).waitForCompletion(false));
    assertFalse(Files.exists(directory.resolve("out")) && attempts("m").stream().anyMatch(
        attempt -> Files.exists(attempt.resolve("report.json"))));
  }

  @Test
  void splits_are_the_lines_in_their_order_and_all_of_one_length() throws Exception {
    List<InputSplit> splits = new PieceInputFormat().getSplits(job("go", 2, MAPS));
    assertEquals(MAPS, splits.size());
    for (int map = 0; map < MAPS; map++) {
      PieceInputFormat.Split split = (PieceInputFormat.Split) splits.get(map);
      assertEquals(map, split.map);
      assertEquals(splits.get(0).getLength(), split.getLength());
      assertArrayEquals(map % 2 == 0 ? new String[0] : new String[] {"h" + map, "other"}, split.getLocations());
    }
    assertEquals(Failure.Kind.INPUT,
        assertThrows(Failure.class, () -> new PieceInputFormat().getSplits(job("go", 2, MAPS + 1))).kind);
    Files.writeString(directory.resolve("job.pieces"), "\t[]\nh\t{}\n");
    assertTrue(assertThrows(Failure.class, () -> new PieceInputFormat().getSplits(job("go", 2, 2)))
        .getMessage().contains("line 2"));
  }

  @Test
  void what_a_request_says_wins_over_its_properties_and_those_over_defaults() throws Exception {
    JobConf conf = (JobConf) job("go", 2, MAPS).getConfiguration();
    assertEquals("q", conf.get("mapreduce.job.queuename"));
    assertEquals("12", conf.get("mapreduce.job.priority"));
    assertEquals("slackline.run=1,slackline.job=2", conf.get("mapreduce.job.tags"));
    assertTrue(conf.getMapSpeculativeExecution());
    assertFalse(conf.getReduceSpeculativeExecution());
    assertEquals("1.0", conf.get("mapreduce.job.reduce.slowstart.completedmaps"));
    assertEquals("2", conf.get("mapreduce.reduce.maxattempts"));
    assertTrue(conf.get("mapreduce.job.cache.files").endsWith("extra#some-name"));
  }
}
