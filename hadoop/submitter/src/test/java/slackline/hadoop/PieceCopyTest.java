package slackline.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PieceCopyTest {
  @TempDir
  Path directory;

  /** From the byte before the offset to the first newline at or behind the end, by strings. */
  private static String expected(String text, int offset, int length) {
    int newline = text.indexOf('\n', offset + length);
    return text.substring(Math.max(0, offset - 1), newline < 0 ? text.length() : newline + 1);
  }

  @Test
  void a_copy_has_the_byte_before_and_the_line_that_is_open_at_the_end() throws IOException {
    for (String text : new String[] {"ab\nc\n\ndef\n", "ab\nc\n\nde", "abcdef", "\n\n\n"}) {
      Path file = Files.writeString(directory.resolve("text"), text);
      for (int offset = 0; offset < text.length(); offset++) {
        for (int length = 1; offset + length <= text.length(); length++) {
          check(file, text, offset, length);
        }
      }
    }
  }

  @Test
  void a_line_may_be_longer_than_a_block() throws IOException {
    String text = "x\n" + "y".repeat(600_000) + "\nz\n";
    Path file = Files.writeString(directory.resolve("text"), text);
    check(file, text, 1, 1);
    check(file, text, 1, 300_000);
    check(file, text, 300_000, 300_003);
  }

  @Test
  void a_file_that_was_changed_is_refused_before_it_is_copied_and_while() throws IOException {
    Path file = Files.writeString(directory.resolve("text"), "a\nb\n");
    Path copy = directory.resolve("copy");
    FileSystem files = FileSystem.getLocal(new Configuration()).getRaw();
    long then = Files.getLastModifiedTime(file).toMillis();
    ObjectNode piece = Fields.JSON.createObjectNode().put("path", file.toString()).put("offset", 0);
    PieceCopy.copy(piece, files, copy, () -> {});
    ObjectNode source = piece.putObject("source").put("bytes", 4).put("modified", then * 1_000);
    PieceCopy.copy(piece, files, copy, () -> {});
    assertEquals("a\nb\n", Files.readString(copy));

    String message = assertThrows(PieceCopy.Changed.class,
        () -> PieceCopy.copy(piece, files, copy, () -> touch(file, then + 7_000))).getMessage();
    assertEquals("input " + file + ": it changed after the run found or made it; pass --again to start over",
        message);
    Files.writeString(copy, "");
    assertThrows(PieceCopy.Changed.class, () -> PieceCopy.copy(piece, files, copy, () -> {}));
    assertEquals("", Files.readString(copy));
    touch(file, then);
    source.put("bytes", 3);
    assertThrows(PieceCopy.Changed.class, () -> PieceCopy.copy(piece, files, copy, () -> {}));
    Files.delete(file);
    assertThrows(PieceCopy.Changed.class, () -> PieceCopy.copy(piece, files, copy, () -> {}));
  }

  private static void touch(Path file, long millis) {
    try {
      Files.setLastModifiedTime(file, FileTime.fromMillis(millis));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void check(Path file, String text, int offset, int length) throws IOException {
    ByteArrayOutputStream copy = new ByteArrayOutputStream();
    FileSystem files = FileSystem.getLocal(new Configuration()).getRaw();
    try (FSDataInputStream input = files.open(new org.apache.hadoop.fs.Path(file.toString()))) {
      PieceCopy.lines(input, offset, length, copy, () -> {});
    }
    assertEquals(expected(text, offset, length), copy.toString(StandardCharsets.UTF_8), offset + " " + length);
  }
}
