package slackline.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import org.apache.hadoop.ipc.RemoteException;
import org.junit.jupiter.api.Test;

class FailureTest {
  @Test
  void a_daemon_that_was_killed_or_just_started_does_not_answer_yet() {
    for (IOException thrown : new IOException[] {
        new ConnectException("Connection refused"), new SocketException("Connection reset"), new EOFException(),
        new RemoteException("org.apache.hadoop.hdfs.server.namenode.SafeModeException",
            "Cannot create file/a. Name node is in safe mode.")}) {
      assertEquals(Failure.Kind.UNREACHABLE, Failure.of(new IOException(thrown), Failure.Kind.OUTPUT).kind);
    }
    assertEquals(Failure.Kind.OUTPUT, Failure.of(new IOException("no space"), Failure.Kind.OUTPUT).kind);
  }
}
