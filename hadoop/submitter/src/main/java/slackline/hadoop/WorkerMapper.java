package slackline.hadoop;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.Mapper;

/** Runs a map in a worker. Hadoop sorts and moves what the worker made as blobs, which it never looks into. */
public final class WorkerMapper extends Mapper<NullWritable, NullWritable, BytesWritable, BytesWritable> {
  /** The partition, the map, and the number of a blob among those of the map for the partition. */
  static final int KEY_BYTES = 12;

  @Override
  public void run(Context context) throws IOException, InterruptedException {
    PieceInputFormat.Split split = (PieceInputFormat.Split) context.getInputSplit();
    int map = context.getTaskAttemptID().getTaskID().getId();
    if (split.map != map) {
      throw new IOException("Hadoop gave map " + map + " the pieces of map " + split.map);
    }
    try (Attempt attempt = new Attempt(context)) {
      attempt.begin();
      List<String> more = new ArrayList<>(List.of("--pieces", Submission.PIECES_NAME));
      try {
        more.addAll(PieceCopy.arguments(split.pieces, context));
      } catch (PieceCopy.Changed e) {
        attempt.giveUp(e.getMessage());
        throw e;
      }
      attempt.start("map", more);
      attempt.read(new Writer(context, map));
      attempt.end(null);
    }
  }

  /** Gives blobs to Hadoop. */
  private static final class Writer implements Attempt.Blobs {
    private final Context context;
    private final int map;
    private int partition = -1;
    private int chunk;

    Writer(Context context, int map) {
      this.context = context;
      this.map = map;
    }

    @Override
    public void take(int tag, byte[] blob) throws IOException, InterruptedException {
      if (tag < partition || tag >= context.getNumReduceTasks()) {
        throw new IOException("the worker wrote partition " + Integer.toUnsignedString(tag) + " of "
            + context.getNumReduceTasks() + (partition < 0 ? "" : " behind partition " + partition));
      }
      chunk = tag == partition ? chunk + 1 : 0;
      partition = tag;
      byte[] key = ByteBuffer.allocate(KEY_BYTES).putInt(partition).putInt(map).putInt(chunk).array();
      context.write(new BytesWritable(key), new BytesWritable(blob));
    }
  }
}
