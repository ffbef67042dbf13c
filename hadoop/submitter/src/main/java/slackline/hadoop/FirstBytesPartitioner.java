package slackline.hadoop;

import java.nio.ByteBuffer;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapreduce.Partitioner;

/** The partition stands in the first four bytes of a key, big-endian. */
public final class FirstBytesPartitioner extends Partitioner<BytesWritable, BytesWritable> {
  @Override
  public int getPartition(BytesWritable key, BytesWritable value, int partitions) {
    return ByteBuffer.wrap(key.getBytes()).getInt();
  }
}
