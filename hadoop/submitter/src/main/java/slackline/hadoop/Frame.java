package slackline.hadoop;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;

/**
 * A message between a task and its worker: a tag, a length N, and N bytes. Tag and length have four bytes each,
 * big-endian. A tag is a partition, a map, or one of the constants below.
 */
record Frame(int tag, byte[] bytes) {
  /** Bytes of the part file. */
  static final int PART = 0xFFFF_FFFE;
  /** The report, the last frame. */
  static final int REPORT = 0xFFFF_FFFF;

  /** The longest frame, bytes. Blobs have up to 1 MiB. */
  private static final int MOST = 16 << 20;

  /** Null where the stream ends. */
  static Frame read(DataInputStream input) throws IOException {
    int first = input.read();
    if (first < 0) {
      return null;
    }
    int tag = first << 24 | input.readUnsignedByte() << 16 | input.readUnsignedShort();
    int length = input.readInt();
    if (length < 0 || length > MOST) {
      throw new IOException("the worker wrote a frame of " + Integer.toUnsignedString(length)
          + " bytes, expected at most " + MOST);
    }
    byte[] bytes = input.readNBytes(length);
    if (bytes.length < length) {
      throw new EOFException("the worker ended in a frame: " + bytes.length + " of " + length + " bytes came");
    }
    return new Frame(tag, bytes);
  }

  static void write(DataOutputStream output, int tag, byte[] bytes, int length) throws IOException {
    output.writeInt(tag);
    output.writeInt(length);
    output.write(bytes, 0, length);
  }
}
