package slackline.hadoop;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.Reducer;

/** Runs a reduce in a worker, which gets all blobs of its partition in the order of maps. */
public final class WorkerReducer extends Reducer<BytesWritable, BytesWritable, NullWritable, NullWritable> {
  @Override
  public void run(Context context) throws IOException, InterruptedException {
    try (Attempt attempt = new Attempt(context)) {
      attempt.begin();
      Process worker = attempt.start("reduce", List.of());
      FutureTask<Void> output = new FutureTask<>(() -> read(attempt));
      Thread reader = new Thread(output, "worker-output");
      reader.setDaemon(true);
      reader.start();
      IOException broken = feed(worker, context);
      try {
        output.get();
      } catch (ExecutionException e) {
        throw e.getCause() instanceof IOException cause ? cause : new IOException(e.getCause());
      }
      attempt.end(broken);
    }
  }

  /** Kills the worker if its output cannot be read or stored: else the thread that writes to it would block for ever. */
  private static Void read(Attempt attempt) throws IOException, InterruptedException {
    try {
      attempt.read((partition, blob) -> {
        throw new IOException("the worker of a reduce wrote partition " + Integer.toUnsignedString(partition));
      });
    } catch (IOException | RuntimeException e) {
      attempt.kill();
      throw e;
    }
    return null;
  }

  /**
   * Writes all there is to the worker. Gives why it did not take everything, if so: its report has a better reason.
   * Where Hadoop fails to give the next blob, the input stays open, or the worker would take what it has for all.
   */
  private static IOException feed(Process worker, Context context) throws IOException, InterruptedException {
    DataOutputStream input = new DataOutputStream(new BufferedOutputStream(worker.getOutputStream(), 1 << 16));
    while (context.nextKeyValue()) {
      int map = ByteBuffer.wrap(context.getCurrentKey().getBytes()).getInt(Integer.BYTES);
      BytesWritable blob = context.getCurrentValue();
      try {
        Frame.write(input, map, blob.getBytes(), blob.getLength());
      } catch (IOException e) {
        return e;
      }
    }
    try {
      input.close();
      return null;
    } catch (IOException e) {
      return e;
    }
  }
}
