package slackline.hadoop;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.util.Progressable;

/** Copies what a map reads into local files, where it lies in a file system that only Hadoop can read. */
final class PieceCopy {
  private static final int BLOCK = 1 << 18;

  private PieceCopy() {}

  /** A file is not what it was when the run found or made it. */
  static final class Changed extends IOException {
    private static final long serialVersionUID = 1;

    Changed(Path path) {
      super("input " + path + ": it changed after the run found or made it; pass --again to start over");
    }
  }

  /** The worker's arguments that say which pieces were copied where. */
  static List<String> arguments(String pieces, TaskAttemptContext context)
      throws IOException {
    List<String> arguments = new ArrayList<>();
    int number = 0;
    for (JsonNode piece : Fields.JSON.readTree(pieces)) {
      Path path = FileVerbs.path(piece.path("path").asText(), "path");
      FileSystem files = path.getFileSystem(context.getConfiguration());
      if (!files.getUri().getScheme().equals("file")) {
        java.nio.file.Path copy = java.nio.file.Path.of("copy-" + number);
        copy(piece, files, copy, context);
        arguments.addAll(List.of("--copy", number + "=" + copy));
      }
      number++;
    }
    return arguments;
  }

  /** Copies a piece of a file that is what it was before and after. */
  static void copy(JsonNode piece, FileSystem files, java.nio.file.Path copy, Progressable alive) throws IOException {
    Path path = FileVerbs.path(piece.path("path").asText(), "path");
    JsonNode length = piece.path("length");
    try (FSDataInputStream input = open(path, files); OutputStream output = Files.newOutputStream(copy)) {
      check(piece, path, files);
      if (length.isNumber()) {
        lines(input, piece.path("offset").asLong(), length.asLong(), output, alive);
      } else {
        copy(input, Long.MAX_VALUE, output, alive);
      }
      check(piece, path, files);
    }
  }

  private static FSDataInputStream open(Path path, FileSystem files) throws IOException {
    try {
      return files.open(path);
    } catch (FileNotFoundException e) {
      throw new Changed(path);
    }
  }

  /** Of a piece that does not say what its file was, nothing is expected. */
  private static void check(JsonNode piece, Path path, FileSystem files) throws IOException {
    JsonNode then = piece.path("source");
    if (!then.isObject()) {
      return;
    }
    try {
      FileStatus now = files.getFileStatus(path);
      if (now.getLen() == then.path("bytes").asLong(-1)
          && now.getModificationTime() * 1_000 == then.path("modified").asLong(-1)) {
        return;
      }
    } catch (FileNotFoundException e) {
      // It is gone.
    }
    throw new Changed(path);
  }

  /**
   * Copies from the byte before `offset` (so that one sees whether a line begins there) to the end of the line that is
   * open at `offset + length`: a line that begins just there belongs to the piece.
   */
  static void lines(FSDataInputStream input, long offset, long length, OutputStream output, Progressable alive)
      throws IOException {
    long from = Math.max(0, offset - 1);
    input.seek(from);
    byte[] block = new byte[BLOCK];
    if (copy(input, offset + length - from, output, alive)) {
      for (int read = input.read(block); read >= 0; read = input.read(block)) {
        int end = 0;
        while (end < read && block[end] != '\n') {
          end++;
        }
        output.write(block, 0, Math.min(end + 1, read));
        alive.progress();
        if (end < read) {
          return;
        }
      }
    }
  }

  /** Copies `length` bytes; false if there are fewer. */
  private static boolean copy(FSDataInputStream input, long length, OutputStream output, Progressable alive)
      throws IOException {
    byte[] block = new byte[BLOCK];
    long left = length;
    while (left > 0) {
      int read = input.read(block, 0, (int) Math.min(block.length, left));
      if (read < 0) {
        return false;
      }
      output.write(block, 0, read);
      left -= read;
      alive.progress();
    }
    return true;
  }
}
