package slackline.hadoop;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;

/** Makes of each line of the pieces file, `HOST,HOST TAB JSON`, a split, so that maps are numbered as its lines are. */
public final class PieceInputFormat extends InputFormat<NullWritable, NullWritable> {
  /** The longest line, bytes. */
  private static final int LINE_MAX = 64 << 20;

  /** What one map reads. */
  public static final class Split extends InputSplit implements Writable {
    int map;
    String pieces;
    private String[] hosts = {};

    /** For Hadoop, which fills it in. */
    public Split() {}

    Split(int map, String pieces, String[] hosts) {
      this.map = map;
      this.pieces = pieces;
      this.hosts = hosts;
    }

    /** The same for all: Hadoop numbers maps by falling length, and keeps the order of equals. */
    @Override
    public long getLength() {
      return 1;
    }

    @Override
    public String[] getLocations() {
      return hosts.clone();
    }

    @Override
    public void write(DataOutput output) throws IOException {
      output.writeInt(map);
      Text.writeString(output, pieces);
    }

    @Override
    public void readFields(DataInput input) throws IOException {
      map = input.readInt();
      pieces = Text.readString(input);
    }
  }

  @Override
  public List<InputSplit> getSplits(JobContext context) throws IOException {
    Configuration conf = context.getConfiguration();
    Path path = new Path(conf.get(Submission.PIECES));
    List<InputSplit> splits = new ArrayList<>();
    try (InputStream input = path.getFileSystem(conf).open(path)) {
      Lines lines = new Lines(input, LINE_MAX);
      for (byte[] line = lines.next(); line != null; line = lines.next()) {
        splits.add(split(new String(line, StandardCharsets.UTF_8), splits.size(), path));
      }
    }
    int maps = conf.getInt(Submission.MAPS, 0);
    if (splits.size() != maps) {
      throw new Failure(Failure.Kind.INPUT, path + " has " + splits.size() + " lines, expected " + maps);
    }
    return splits;
  }

  private static Split split(String line, int map, Path path) throws Failure {
    int tab = line.indexOf('\t');
    boolean isGood;
    try {
      isGood = tab >= 0 && Fields.JSON.readTree(line.substring(tab + 1)).isArray();
    } catch (JsonProcessingException e) {
      isGood = false;
    }
    if (!isGood) {
      throw new Failure(Failure.Kind.INPUT,
          path + ", line " + (map + 1) + ": expected hosts, a tab and a JSON array of pieces");
    }
    String hosts = line.substring(0, tab);
    return new Split(map, line.substring(tab + 1), hosts.isEmpty() ? new String[0] : hosts.split(","));
  }

  /** Reads nothing: the worker does. */
  @Override
  public RecordReader<NullWritable, NullWritable> createRecordReader(InputSplit split, TaskAttemptContext context) {
    return new RecordReader<>() {
      @Override
      public void initialize(InputSplit split, TaskAttemptContext context) {}

      @Override
      public boolean nextKeyValue() {
        return false;
      }

      @Override
      public NullWritable getCurrentKey() {
        return NullWritable.get();
      }

      @Override
      public NullWritable getCurrentValue() {
        return NullWritable.get();
      }

      @Override
      public float getProgress() {
        return 0;
      }

      @Override
      public void close() {}
    };
  }
}
