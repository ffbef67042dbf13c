package slackline.hadoop;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;

/** Lines of bytes, none of which takes more memory than a limit. */
final class Lines {
  private final InputStream input;
  private final int limit;
  private boolean isCut;

  Lines(InputStream input, int limit) {
    this.input = new BufferedInputStream(input, 1 << 16);
    this.limit = limit;
  }

  /** The next line without its newline, or the next piece of a line that is longer than the limit; null at the end. */
  byte[] next() throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    int b = -1;
    while (line.size() < limit && (b = input.read()) >= 0 && b != '\n') {
      line.write(b);
    }
    isCut = b >= 0 && b != '\n';
    return b < 0 && line.size() == 0 ? null : line.toByteArray();
  }

  /** Whether the last piece is not the end of its line. */
  boolean isCut() {
    return isCut;
  }
}
