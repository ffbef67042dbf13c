package slackline.hadoop;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.output.NullOutputFormat;

/** Makes a MapReduce application of a request, whose tasks run Slackline's worker. */
final class Submission {
  /** Keys of the job's configuration. */
  static final String PIECES = "slackline.pieces";
  static final String MAPS = "slackline.maps";
  static final String DESTINATION = "slackline.destination";

  /** Names in the working directory of a container. */
  static final String SPEC_NAME = "spec.json";
  static final String PIECES_NAME = "pieces";
  static final String WORKER_NAME = "slackline-worker";
  /** Where the worker keeps its files there. */
  static final String WORK = "work";

  private Submission() {}

  static Job job(Configuration site, Fields request) throws IOException {
    String name = request.text("name");
    Path spec = file(request, "spec");
    Path pieces = file(request, "pieces");
    Path worker = file(request, "worker");
    Path destination = file(request, "destination");
    int maps = request.count("maps", 0);
    int reducers = request.count("reducers", 0);
    int attempts = request.count("attempts", 1);
    int memory = request.count("memory_mb", 1);
    int cores = request.count("cores", 1);
    List<String> files = request.texts("files");

    // Jobs made of one JobConf would share its credentials, and jobs are submitted at the same time.
    Job job = Job.getInstance(new Configuration(site), name);
    Configuration conf = job.getConfiguration();
    setDefaults(conf, memory);
    setAbout(conf, request);
    request.end();
    conf.set(PIECES, pieces.toString());
    conf.setInt(MAPS, maps);
    conf.set(DESTINATION, destination.toString());
    for (String phase : List.of("map", "reduce")) {
      conf.setInt("mapreduce." + phase + ".maxattempts", attempts);
      conf.setInt("mapreduce." + phase + ".memory.mb", memory);
      conf.setInt("mapreduce." + phase + ".cpu.vcores", cores);
    }
    // Tasks inside the ApplicationMaster would not be where the scheduler counts them.
    conf.setBoolean("mapreduce.job.ubertask.enable", false);

    job.setJobName(name);
    job.setJarByClass(Submission.class);
    job.setInputFormatClass(PieceInputFormat.class);
    job.setMapperClass(WorkerMapper.class);
    job.setReducerClass(WorkerReducer.class);
    job.setPartitionerClass(FirstBytesPartitioner.class);
    job.setSortComparatorClass(BytesWritable.Comparator.class);
    job.setOutputFormatClass(NullOutputFormat.class);
    job.setMapOutputKeyClass(BytesWritable.class);
    job.setMapOutputValueClass(BytesWritable.class);
    job.setOutputKeyClass(NullWritable.class);
    job.setOutputValueClass(NullWritable.class);
    job.setNumReduceTasks(reducers);
    Set<String> names = new HashSet<>(Set.of(WORK));
    addFile(job, spec, SPEC_NAME, names);
    addFile(job, pieces, PIECES_NAME, names);
    addFile(job, worker, WORKER_NAME, names);
    for (String file : files) {
      int mark = file.lastIndexOf('#');
      Path path = FileVerbs.path(mark < 0 ? file : file.substring(0, mark), "files");
      addFile(job, path, mark < 0 ? path.getName() : file.substring(mark + 1), names);
    }
    return job;
  }

  /** What holds unless a property says otherwise. */
  private static void setDefaults(Configuration conf, int memory) {
    conf.set("mapreduce.job.reduce.slowstart.completedmaps", "1.0");
    conf.setInt("mapreduce.task.io.sort.mb", 32);
    for (String phase : List.of("map", "reduce")) {
      conf.setBoolean("mapreduce." + phase + ".speculative", false);
      // The JVM only passes bytes on: the memory is the worker's, and a quick start is worth more than a quick run.
      conf.set("mapreduce." + phase + ".java.opts",
          "-Xmx" + Math.max(64, Math.min(memory / 2, 200)) + "m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData");
    }
  }

  /** What the schedulers of a cluster see of a job, and further properties. */
  static void setAbout(Configuration conf, Fields request) throws Failure {
    for (Map.Entry<String, String> property : request.properties("properties").entrySet()) {
      conf.set(property.getKey(), property.getValue());
    }
    String queue = request.textOrNull("queue");
    if (queue != null) {
      conf.set("mapreduce.job.queuename", queue);
    }
    Integer priority = request.countOrNull("priority");
    if (priority != null) {
      conf.setInt("mapreduce.job.priority", priority);
    }
    List<String> tags = request.texts("tags");
    for (String tag : tags) {
      if (tag.isBlank() || tag.contains(",")) {
        throw Failure.refused("a tag must have a character and no comma, found \"" + tag + "\"");
      }
    }
    if (!tags.isEmpty()) {
      conf.set("mapreduce.job.tags", String.join(",", tags));
    }
  }

  private static Path file(Fields request, String name) throws Failure {
    return FileVerbs.path(request.text(name), name);
  }

  /** Has a file linked into the working directory of each container. */
  private static void addFile(Job job, Path path, String name, Set<String> names) throws IOException {
    if (name.isEmpty() || name.contains("/") || !names.add(name)) {
      throw Failure.refused("\"files\" has " + path + " under the name \"" + name + "\": it must be a plain name, "
          + "and no other file's (" + String.join(", ", names) + ")");
    }
    URI file = path.getFileSystem(job.getConfiguration()).makeQualified(path).toUri();
    try {
      job.addCacheFile(new URI(file.getScheme(), file.getAuthority(), file.getPath(), null, name));
    } catch (URISyntaxException e) {
      throw Failure.refused(path + " cannot be named in a URI: " + e.getMessage());
    }
  }
}
