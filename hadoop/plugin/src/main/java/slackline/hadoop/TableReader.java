package slackline.hadoop;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The current table of a file, if there is a valid one. A separate thread reads the file, so a disk that hangs never
 * blocks the scheduler. Before the first read there is no table. A table that was read expires.
 */
final class TableReader {
  private static final Logger LOG = LoggerFactory.getLogger(TableReader.class);
  private static final Map<String, TableReader> READERS = new ConcurrentHashMap<>();
  private static final int BYTES_MAX = 16 << 20;
  /** Writers renew their tables often. A longer validity is a mistake: if the writer died, jobs would wait for ever. */
  private static final long VALID_MAX_MS = 3_600_000;

  private final Path file;
  private final LongSupplier clock;
  private String seen = "";
  private volatile Table table;
  private String state = "";

  /** The reader of a file. It checks the file until the process ends. */
  static TableReader of(String file) {
    return READERS.computeIfAbsent(file, name -> {
      TableReader reader = new TableReader(Paths.get(name), System::currentTimeMillis);
      LOG.info("Slackline is active; its table is {}", file);
      reader.start();
      return reader;
    });
  }

  TableReader(Path file, LongSupplier clock) {
    this.file = file;
    this.clock = clock;
  }

  /** The table to follow now, or null if Hadoop schedules as usual. A table expires even if the thread has died. */
  Table table() {
    Table last = table;
    return last == null || last.expires <= clock.getAsLong() ? null : last;
  }

  void start() {
    Thread thread = new Thread(this::run, "slackline-table");
    thread.setDaemon(true);
    thread.start();
  }

  private void run() {
    try {
      while (true) {
        look();
        Thread.sleep(table == null ? 200 : 20);
      }
    } catch (InterruptedException e) {
      table = null; // the process ends
    }
  }

  /** Checks the file once. Writes a line to the log when it starts or stops following the table. */
  void look() {
    Table now = null;
    String then;
    try {
      String signature = signature(file) + signature(file.getParent());
      now = signature.equals(seen) && table != null ? table : read();
      seen = signature;
      then = now.expires > clock.getAsLong() ? "follows " + file
          : "Hadoop schedules as usual: " + file + " has expired";
    } catch (NoSuchFileException e) {
      then = "Hadoop schedules as usual: there is no " + e.getFile();
    } catch (IllegalArgumentException e) {
      then = "Hadoop schedules as usual: " + file + ", " + e.getMessage();
    } catch (IOException | RuntimeException | Error e) {
      then = "Hadoop schedules as usual: " + e;
    }
    table = now;
    if (!then.equals(state)) {
      state = then;
      LOG.info("Slackline: {}{}", then, now == null ? "" : " (sequence " + now.sequence + ", rows " + now.size() + ")");
    }
  }

  /** The last line of the log, for tests. */
  String state() {
    return state;
  }

  /** Differs whenever the file or directory was replaced or changed. */
  private static String signature(Path path) throws IOException {
    return Files.readAttributes(path, "unix:ino,ctime,size,lastModifiedTime", LinkOption.NOFOLLOW_LINKS).toString();
  }

  private Table read() throws IOException {
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) || Files.size(file) > BYTES_MAX) {
      throw new IllegalArgumentException("not a regular file of at most " + BYTES_MAX + " bytes");
    }
    refuseIfOthersWrite(file, 0);
    Path directory = file.getParent().toRealPath();
    refuseIfOthersWrite(directory, 0);
    // A user who can replace a parent directory can replace the table. The sticky bit, as of /tmp, prevents that.
    for (Path above = directory.getParent(); above != null; above = above.getParent()) {
      refuseIfOthersWrite(above, 01000);
    }
    Table read = Table.parse(new String(Files.readAllBytes(file), StandardCharsets.UTF_8));
    if (read.expires > clock.getAsLong() + VALID_MAX_MS) {
      throw new IllegalArgumentException("line 1: the expiry is more than an hour from now");
    }
    return read;
  }

  private static void refuseIfOthersWrite(Path path, int unless) throws IOException {
    int mode = (Integer) Files.getAttribute(path, "unix:mode");
    if ((mode & 022) != 0 && (mode & unless) == 0) {
      throw new IllegalArgumentException("others than its owner may write to " + path + " (chmod go-w " + path + ")");
    }
  }
}
