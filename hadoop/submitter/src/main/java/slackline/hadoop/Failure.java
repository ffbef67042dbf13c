package slackline.hadoop;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.util.Locale;
import javax.net.ssl.SSLException;
import org.apache.hadoop.fs.UnsupportedFileSystemException;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.ipc.RetriableException;
import org.apache.hadoop.ipc.StandbyException;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.yarn.exceptions.YarnException;

/** Why a request was not done: a kind for the program that asked, and a message for a person. */
final class Failure extends IOException {
  private static final long serialVersionUID = 1;

  /** What has to change for the request to succeed. */
  enum Kind {
    /** Something that was to be read is not there, or not as it should be. */
    INPUT,
    /** Something could not be written, moved or removed. */
    OUTPUT,
    /** The cluster wants credentials or encryption. */
    SECURITY,
    /** The request is malformed, or the cluster turned it down. */
    REFUSED,
    /** A daemon does not answer; later it may. */
    UNREACHABLE,
    /** Anything else. */
    OTHER;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  final Kind kind;

  Failure(Kind kind, String message) {
    super(message);
    this.kind = kind;
  }

  static Failure refused(String message) {
    return new Failure(Kind.REFUSED, message);
  }

  /** What an exception of Hadoop means; `otherwise` if it does not say. */
  static Failure of(Throwable thrown, Kind otherwise) {
    for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
      if (cause instanceof Failure failure) {
        return failure;
      }
      Throwable real = cause instanceof RemoteException remote ? remote.unwrapRemoteException() : cause;
      Kind kind = kindOf(real, otherwise);
      if (kind != null) {
        return new Failure(kind, messageOf(real));
      }
    }
    return new Failure(otherwise, messageOf(thrown));
  }

  private static Kind kindOf(Throwable thrown, Kind otherwise) {
    String message = String.valueOf(thrown.getMessage());
    if (thrown instanceof SSLException || message.contains("SIMPLE authentication is not enabled")) {
      return Kind.SECURITY;
    }
    // A daemon that is killed cuts connections, and a NameNode that was just started only lets read.
    if (thrown instanceof SocketException || thrown instanceof EOFException || message.contains("in safe mode")
        || thrown instanceof UnknownHostException || thrown instanceof SocketTimeoutException
        || thrown instanceof InterruptedIOException || thrown instanceof RetriableException
        || thrown instanceof StandbyException) {
      return Kind.UNREACHABLE;
    }
    if (thrown instanceof FileNotFoundException || thrown instanceof UnsupportedFileSystemException) {
      return otherwise == Kind.OUTPUT ? Kind.OUTPUT : Kind.INPUT;
    }
    return thrown instanceof YarnException ? Kind.REFUSED : null;
  }

  /** The message without the name of its exception and without the stack traces and links that Hadoop packs into messages. */
  private static String messageOf(Throwable thrown) {
    String message = thrown.getMessage();
    if (message == null || message.isBlank()) {
      return thrown.getClass().getSimpleName();
    }
    if (thrown instanceof UnknownHostException) {
      return "unknown host " + message;
    }
    String text = message.split("\n\\s*at |; For more details see:", 2)[0].strip();
    boolean isName = thrown instanceof AccessControlException || thrown instanceof YarnException;
    return isName ? text.replaceFirst("^([a-z]\\w*\\.)+[A-Z]\\w*: ", "") : text;
  }
}
