package slackline.hadoop;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.CountDownLatch;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

final class TableReaderTest {
  @TempDir
  Path temporary;
  private Path directory;
  private Path file;
  private long now = 1_000;
  private TableReader reader;

  @BeforeEach
  void an_empty_directory_of_ours() throws IOException {
    directory = Files.createDirectory(temporary.resolve("table"));
    mode(directory, "rwx------");
    file = directory.resolve("table");
    reader = new TableReader(file, () -> now);
  }

  private static void mode(Path path, String mode) throws IOException {
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(mode));
  }

  private void write(String text) throws IOException {
    Path next = directory.resolve("next");
    Files.write(next, text.getBytes(UTF_8));
    mode(next, "rw-r--r--");
    Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
  }

  private void write(long sequence, long expires) throws IOException {
    write("slackline 1 " + sequence + " " + expires + "\nend 0\n");
  }

  private void ignores(String reason) {
    reader.look();
    assertNull(reader.table());
    assertTrue(reader.state().startsWith("Hadoop schedules as usual: "), reader.state());
    assertTrue(reader.state().contains(reason), reader.state());
  }

  private void follows(long sequence) {
    reader.look();
    assertNotNull(reader.table(), reader.state());
    assertEquals(sequence, reader.table().sequence);
    assertEquals("follows " + file, reader.state());
  }

  @Test
  void a_table_comes_changes_and_goes() throws IOException {
    ignores("there is no " + file);
    write(1, 2_000);
    follows(1);
    follows(1);
    write(2, 2_000); // of the same length, perhaps in the same millisecond
    follows(2);
    Files.delete(file);
    ignores("there is no " + file);
    write(3, 2_000);
    follows(3);
  }

  @Test
  void it_ends_when_it_expires_whether_or_not_anybody_looks() throws IOException {
    write(1, 2_000);
    follows(1);
    now = 1_999;
    assertNotNull(reader.table());
    now = 2_000;
    assertNull(reader.table());
    ignores("expired");
    write(2, 2_001);
    follows(2);
  }

  @Test
  void one_that_would_hold_for_hours_is_refused() throws IOException {
    write(1, now + 3_600_001);
    ignores("more than an hour");
    write(1, now + 3_600_000);
    follows(1);
  }

  @Test
  void a_broken_one_does_not_leave_the_last_one_in_force() throws IOException {
    write(1, 2_000);
    follows(1);
    write("slackline 1 2 2000\nrubbish\nend 1\n");
    ignores("line 2: expected 6 fields");
    write(3, 2_000);
    follows(3);
  }

  @Test
  void what_is_no_regular_file_is_refused() throws IOException {
    Files.createDirectory(file);
    ignores("not a regular file");
    Files.delete(file);
    Files.write(directory.resolve("other"), "slackline 1 1 2000\nend 0\n".getBytes(UTF_8));
    Files.createSymbolicLink(file, directory.resolve("other"));
    ignores("not a regular file");
  }

  @Test
  void one_that_others_can_write_is_refused_and_followed_when_they_no_longer_can() throws IOException {
    write(1, 2_000);
    for (String mode : new String[] {"rwxrwx---", "rwx----w-", "rwxrwxrwx"}) {
      mode(directory, mode);
      ignores("others than its owner may write to " + directory.toRealPath());
      mode(directory, "rwxr-xr-x");
      follows(1);
    }
    mode(file, "rw-rw-r--");
    ignores("others than its owner may write to " + file);
    mode(file, "rw-r--r--");
    follows(1);
  }

  @Test
  void so_is_one_whose_directory_others_can_exchange() throws IOException {
    write(1, 2_000);
    mode(temporary, "rwxrwxrwx");
    ignores("others than its owner may write to " + temporary.toRealPath());
    mode(temporary, "rwx------");
    follows(1);
  }

  @Test
  @Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void a_disk_that_hangs_does_not_block_the_scheduler() throws InterruptedException {
    CountDownLatch looked = new CountDownLatch(1);
    CountDownLatch hangs = new CountDownLatch(1);
    Path away = mock(Path.class);
    when(away.getFileSystem()).thenAnswer(call -> {
      looked.countDown();
      hangs.await();
      throw new UncheckedIOException(new IOException("stale file handle"));
    });
    TableReader waiting = new TableReader(away, () -> now);
    waiting.start();
    looked.await();
    assertNull(waiting.table());
    hangs.countDown();
  }

  @Test
  void rights_that_change_end_a_table_that_was_followed() throws IOException {
    write(1, 2_000);
    follows(1);
    mode(directory, "rwxrwxrwx");
    ignores("others than its owner may write to");
  }
}
