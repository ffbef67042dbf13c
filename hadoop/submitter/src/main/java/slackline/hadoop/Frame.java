package slackline.hadoop;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;

/**
 * What goes between a task and its worker: a tag, a length, both four bytes, big-endian, and so many bytes. A tag is a
 * partition or a map, or one of those below.
 */
record Frame(int tag, byte[] bytes) {
  /** Bytes of the part file. */
  static final int PART = 0xFFFF_FFFE;
  /** The report, the last frame. */
  static final int REPORT = 0xFFFF_FFFF;

  /** No frame is longer, bytes. Blobs have up to 1 MiB. */
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
