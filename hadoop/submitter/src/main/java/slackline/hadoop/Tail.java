package slackline.hadoop;

import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.stream.Collectors;

/** The last lines that a process said. */
final class Tail {
  /** How much is kept, bytes, and how much of one line. */
  private static final int MOST = 8 << 10;
  static final int LINE = 4 << 10;

  private final ArrayDeque<byte[]> lines = new ArrayDeque<>();
  private int bytes;

  synchronized void add(byte[] line) {
    lines.add(line);
    bytes += line.length + 1;
    while (bytes > MOST) {
      bytes -= lines.remove().length + 1;
    }
  }

  @Override
  public synchronized String toString() {
    return lines.stream().map(line -> new String(line, StandardCharsets.UTF_8)).collect(Collectors.joining("\n"));
  }
}
