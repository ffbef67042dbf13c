package slackline.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class SubmitterTest {
  @TempDir
  Path directory;

  private Process start(Path socket) throws IOException {
    return new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx128m",
        "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"), "slackline.hadoop.Submitter",
        "--socket", socket.toString()).start();
  }

  @Test
  void a_directory_that_others_can_write_or_enter_is_refused() throws IOException {
    for (String mode : new String[] {"rwx------", "rwxr--r--"}) {
      Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString(mode));
      Submitter.checkDirectory(directory);
    }
    for (String mode : new String[] {"rwx--x---", "rwx-w----", "rwx-----x", "rwx----w-", "rwxrwxrwx"}) {
      Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString(mode));
      assertTrue(assertThrows(IOException.class, () -> Submitter.checkDirectory(directory)).getMessage()
          .contains("expected mode 0700"), mode);
    }
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
    Path link = Files.createSymbolicLink(directory.resolve("link"), directory);
    assertThrows(IOException.class, () -> Submitter.checkDirectory(link));
  }

  @Test
  void an_open_directory_ends_the_process_with_2() throws Exception {
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
    Process process = start(directory.resolve("socket"));
    assertTrue(process.waitFor(60, TimeUnit.SECONDS));
    assertEquals(2, process.exitValue());
    assertTrue(new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8).contains("0700"));
  }

  @Test
  void requests_are_answered_on_the_socket_until_standard_input_ends() throws Exception {
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
    Path socket = directory.resolve("socket");
    Process process = start(socket);
    try {
      BufferedReader said = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
      assertEquals("ready 1", said.readLine());
      for (int connection = 0; connection < 2; connection++) {
        try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
          String requests = "{\"id\":1,\"do\":\"about\"}\nnonsense\n{\"id\":2,\"do\":\"stat\",\"path\":\"/\"}\n";
          channel.write(ByteBuffer.wrap(requests.getBytes(StandardCharsets.UTF_8)));
          BufferedReader answers = new BufferedReader(Channels.newReader(channel, StandardCharsets.UTF_8));
          Map<String, JsonNode> byId = new TreeMap<>();
          for (int i = 0; i < 3; i++) {
            JsonNode answer = Fields.JSON.readTree(answers.readLine());
            byId.put(answer.get("id").toString(), answer);
          }
          assertEquals(1, byId.get("1").at("/done/version").asInt());
          assertTrue(byId.get("2").at("/done/entry/directory").asBoolean());
          assertEquals("refused", byId.get("null").at("/failed/kind").asText());
        }
      }
      process.getOutputStream().close();
      assertTrue(process.waitFor(60, TimeUnit.SECONDS));
      assertEquals(0, process.exitValue());
      assertEquals(null, said.readLine());
      assertTrue(Files.notExists(socket));
    } finally {
      process.destroyForcibly();
    }
  }
}
