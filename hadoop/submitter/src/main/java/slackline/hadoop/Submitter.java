package slackline.hadoop;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hadoop.mapred.JobConf;

/**
 * A resident client of a Hadoop cluster: answers requests, a line each, on a Unix domain socket that only its user can
 * reach, and ends when its standard input ends. The protocol is in docs/hadoop-submitter.md.
 */
public final class Submitter {
  /** The longest request, bytes. JSON libraries take no longer strings. */
  private static final int LINE_MAX = 20_000_000;
  private static final int THREADS = 4;

  private final Requests requests;
  private final ExecutorService pool = Executors.newFixedThreadPool(THREADS);

  Submitter(Requests requests) {
    this.requests = requests;
  }

  /** Takes `--socket PATH`. Exits with 2 if it cannot listen there, else with 0 after the end of standard input. */
  public static void main(String[] arguments) {
    PrintStream out = System.out;
    // Standard output has only the line "ready", so the logging of any cluster is sent to standard error.
    System.setOut(System.err);
    try {
      if (arguments.length != 2 || !arguments[0].equals("--socket")) {
        throw new IOException("usage: slackline.hadoop.Submitter --socket PATH");
      }
      Path socket = Path.of(arguments[1]).toAbsolutePath();
      checkDirectory(socket.getParent());
      ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
      server.bind(UnixDomainSocketAddress.of(socket));
      socket.toFile().deleteOnExit();
      Submitter submitter = new Submitter(new Requests(new JobConf(), socket.getParent()));
      Thread acceptor = new Thread(() -> submitter.accept(server), "accept");
      acceptor.setDaemon(true);
      acceptor.start();
      Fields.of("{}".getBytes(StandardCharsets.UTF_8)); // a class that is missing on the class path is noticed now
      out.println("ready " + Requests.VERSION);
      out.flush();
      System.in.transferTo(OutputStream.nullOutputStream());
      System.exit(0);
    } catch (IOException | RuntimeException | LinkageError e) {
      System.err.println("submitter: " + (e.getMessage() == null ? e.toString() : e.getMessage()));
      System.exit(2);
    }
  }

  /** Refuses a directory that another user can write or enter: a client of the socket acts as the user who owns it. */
  static void checkDirectory(Path directory) throws IOException {
    PosixFileAttributes is =
        Files.readAttributes(directory, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    if (!is.isDirectory()) {
      throw new IOException(directory + " is not a directory");
    }
    String me = System.getProperty("user.name");
    if (!is.owner().getName().equals(me)) {
      throw new IOException(directory + " belongs to " + is.owner().getName() + ", expected " + me);
    }
    Set<PosixFilePermission> open = EnumSet.of(PosixFilePermission.GROUP_WRITE, PosixFilePermission.GROUP_EXECUTE,
        PosixFilePermission.OTHERS_WRITE, PosixFilePermission.OTHERS_EXECUTE);
    open.retainAll(is.permissions());
    if (!open.isEmpty()) {
      throw new IOException(directory + " can be written or entered by others, expected mode 0700");
    }
  }

  /** Serves one connection after the other. */
  private void accept(ServerSocketChannel server) {
    while (true) {
      try (SocketChannel connection = server.accept()) {
        serve(connection);
      } catch (IOException e) {
        System.err.println("submitter: a connection ended: " + e.getMessage());
      }
    }
  }

  private void serve(SocketChannel connection) throws IOException {
    Lines lines = new Lines(input(connection), LINE_MAX);
    for (byte[] line = lines.next(); line != null; line = lines.next()) {
      if (lines.isCut()) {
        while (lines.isCut() && lines.next() != null) {
          // Skips the rest of a line that is too long.
        }
        ObjectNode answer = Fields.JSON.createObjectNode().putNull("id");
        Failure failure = Failure.refused("a request of more than " + LINE_MAX + " bytes");
        say(connection, answer.set("failed", Requests.failed(failure)));
      } else {
        byte[] request = line;
        pool.execute(() -> say(connection, requests.answer(request)));
      }
    }
  }

  /** Java's own stream of a channel blocks writers while a reader waits for input; this stream does not. */
  private static InputStream input(SocketChannel connection) {
    return new InputStream() {
      @Override
      public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
      }

      @Override
      public int read(byte[] into, int offset, int length) throws IOException {
        return connection.read(ByteBuffer.wrap(into, offset, length));
      }
    };
  }

  private static void say(SocketChannel connection, ObjectNode answer) {
    try {
      byte[] text = Fields.JSON.writeValueAsBytes(answer);
      ByteBuffer line = ByteBuffer.allocate(text.length + 1).put(text).put((byte) '\n').flip();
      synchronized (connection) {
        while (line.hasRemaining()) {
          connection.write(line);
        }
      }
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("an answer can be written as JSON", e);
    } catch (IOException e) {
      System.err.println("submitter: cannot send an answer: " + e.getMessage());
    }
  }
}
