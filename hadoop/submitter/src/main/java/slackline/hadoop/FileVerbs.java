package slackline.hadoop;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.GlobPattern;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Options.Rename;
import org.apache.hadoop.fs.Path;

/** Files of any file system that Hadoop has. Paths without a scheme are the default one's. */
final class FileVerbs {
  /** The most that is read at once, bytes. */
  private static final int READ_MAX = 64 << 20;

  private final Configuration conf;

  FileVerbs(Configuration conf) {
    this.conf = conf;
  }

  /** What matches a pattern, or what is in a directory. */
  ObjectNode list(Fields request) throws IOException {
    Path path = path(request, "path");
    request.end();
    FileSystem files = path.getFileSystem(conf);
    FileStatus[] found = files.globStatus(path);
    if (found == null) {
      throw new Failure(Failure.Kind.INPUT, path + " is not there");
    }
    // Directories that a pattern matches are listed themselves.
    boolean isPattern = new GlobPattern(path.toUri().getPath()).hasWildcard();
    if (!isPattern && found.length == 1 && found[0].isDirectory()) {
      found = files.listStatus(found[0].getPath());
    }
    ObjectNode done = Fields.JSON.createObjectNode();
    ArrayNode entries = done.putArray("entries");
    Arrays.stream(found).map(FileVerbs::entry).sorted(Comparator.comparing(
        entry -> entry.get("path").textValue().getBytes(StandardCharsets.UTF_8), Arrays::compareUnsigned))
        .forEach(entries::add);
    return done;
  }

  ObjectNode stat(Fields request) throws IOException {
    Path path = path(request, "path");
    request.end();
    ObjectNode done = Fields.JSON.createObjectNode();
    try {
      done.set("entry", entry(path.getFileSystem(conf).getFileStatus(path)));
    } catch (FileNotFoundException e) {
      done.putNull("entry");
    }
    return done;
  }

  /** Fewer bytes than asked for only at the end of the file. */
  ObjectNode read(Fields request) throws IOException {
    Path path = path(request, "path");
    long offset = request.whole("offset", 0, Long.MAX_VALUE);
    int length = (int) request.whole("length", 0, READ_MAX);
    request.end();
    FileSystem files = path.getFileSystem(conf);
    FileStatus status = files.getFileStatus(path);
    if (status.isDirectory()) {
      throw new Failure(Failure.Kind.INPUT, path + " is a directory");
    }
    long left = Math.max(0, status.getLen() - offset);
    byte[] bytes = new byte[(int) Math.min(left, length)];
    if (bytes.length > 0) {
      try (FSDataInputStream input = files.open(path)) {
        input.readFully(offset, bytes);
      }
    }
    return Fields.JSON.createObjectNode().put("base64", Base64.getEncoder().encodeToString(bytes));
  }

  /** Replaces a file as a whole, with bytes or what a file of this machine has: readers see the old or the new one. */
  ObjectNode write(Fields request) throws IOException {
    Path path = path(request, "path");
    String local = request.textOrNull("local");
    if (local != null) {
      request.end();
      java.nio.file.Path file = java.nio.file.Path.of(local);
      if (!Files.isReadable(file)) {
        throw new Failure(Failure.Kind.INPUT, file + " is not there, or cannot be read");
      }
      makeParent(path);
      replace(path, conf, output -> Files.copy(file, output));
    } else {
      byte[] bytes = bytes(request.text("base64"));
      request.end();
      makeParent(path);
      replace(path, conf, output -> output.write(bytes));
    }
    return Fields.JSON.createObjectNode();
  }

  private void makeParent(Path path) throws IOException {
    if (path.getParent() != null) {
      path.getFileSystem(conf).mkdirs(path.getParent());
    }
  }

  private static byte[] bytes(String base64) throws Failure {
    try {
      return Base64.getDecoder().decode(base64);
    } catch (IllegalArgumentException e) {
      throw Failure.refused("\"base64\" is not base64: " + e.getMessage());
    }
  }

  ObjectNode delete(Fields request) throws IOException {
    Path path = path(request, "path");
    request.end();
    FileSystem files = path.getFileSystem(conf);
    // What is left of `..` in a path of Hadoop leads above the root, which is the root to the system.
    String inside = files.makeQualified(path).toUri().getPath().replace("/..", "");
    if (inside.isEmpty() || inside.equals("/")) {
      throw Failure.refused(path + " is a root, which is never deleted");
    }
    if (!files.delete(path, true) && files.exists(path)) {
      throw new Failure(Failure.Kind.OUTPUT, path + " could not be deleted");
    }
    return Fields.JSON.createObjectNode();
  }

  /** Takes the name of nothing that is there. */
  ObjectNode rename(Fields request) throws IOException {
    Path from = path(request, "from");
    Path to = path(request, "to");
    request.end();
    FileContext.getFileContext(from.getFileSystem(conf).getUri(), conf).rename(from, to);
    return Fields.JSON.createObjectNode();
  }

  ObjectNode mkdirs(Fields request) throws IOException {
    Path path = path(request, "path");
    request.end();
    if (!path.getFileSystem(conf).mkdirs(path)) {
      throw new Failure(Failure.Kind.OUTPUT, path + " could not be made");
    }
    return Fields.JSON.createObjectNode();
  }

  /**
   * Opens a file for writing in a directory that has to be there, without the file of checksums that Hadoop puts beside
   * it on a local file system.
   */
  static FSDataOutputStream create(Path path, Configuration conf) throws IOException {
    FileSystem files = path.getFileSystem(conf);
    FileSystem system = files instanceof LocalFileSystem local ? local.getRaw() : files;
    return system.createFile(path).overwrite(true).build();
  }

  /** Writes what a file is to hold. */
  interface Content {
    void write(OutputStream output) throws IOException;
  }

  /** Writes a file under another name first, in a directory that has to be there. */
  static void replace(Path path, Configuration conf, Content content) throws IOException {
    Path temporary = new Path(path.getParent(), "." + path.getName() + "." + UUID.randomUUID());
    FileSystem files = path.getFileSystem(conf);
    try {
      try (FSDataOutputStream output = create(temporary, conf)) {
        content.write(output);
        output.hsync();
      }
      FileContext.getFileContext(files.getUri(), conf).rename(temporary, path, Rename.OVERWRITE);
    } catch (IOException e) {
      files.delete(temporary, false);
      throw e;
    }
  }

  private static Path path(Fields request, String name) throws IOException {
    return path(request.text(name), name);
  }

  /** A path as it stands: nothing in it is percent-encoded. */
  static Path path(String text, String name) throws Failure {
    try {
      return new Path(text);
    } catch (IllegalArgumentException e) {
      throw Failure.refused("\"" + name + "\" is no path: " + e.getMessage());
    }
  }

  private static ObjectNode entry(FileStatus status) {
    URI uri = status.getPath().toUri();
    // Hadoop writes file:/a where everybody else writes file:///a.
    boolean isLocal = "file".equals(uri.getScheme()) && uri.getAuthority() == null;
    return Fields.JSON.createObjectNode()
        .put("path", isLocal ? "file://" + uri.getPath() : status.getPath().toString())
        .put("length", status.isDirectory() ? 0 : status.getLen())
        .put("modified", status.getModificationTime())
        .put("directory", status.isDirectory());
  }
}
