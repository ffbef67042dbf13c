package slackline.hadoop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;

/**
 * Runs the program of a jar in a process that ends when the submitter ends. The submitter holds the other end of the
 * standard input of this process, which closes however the submitter ends. The program sees an empty standard input.
 */
public final class JarProgram {
  /** As that of a process that was killed. */
  private static final int KILLED = 128 + 9;

  private JarProgram() {}

  /** Takes the name of the main class and its arguments. */
  public static void main(String[] arguments) throws Throwable {
    InputStream submitter = System.in;
    System.setIn(InputStream.nullInputStream());
    Thread leash = new Thread(() -> endWith(submitter), "leash");
    leash.setDaemon(true);
    leash.start();
    Method main;
    try {
      main = Class.forName(arguments[0]).getMethod("main", String[].class);
    } catch (ClassNotFoundException | NoSuchMethodException e) {
      System.err.println("found no class " + arguments[0] + " with a main method in the jar, expected one");
      System.exit(1);
      return;
    }
    main.setAccessible(true);
    try {
      main.invoke(null, (Object) Arrays.copyOfRange(arguments, 1, arguments.length));
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  private static void endWith(InputStream submitter) {
    try {
      submitter.transferTo(OutputStream.nullOutputStream());
    } catch (IOException e) {
      // As good as its end.
    }
    ProcessHandle.current().descendants().forEach(ProcessHandle::destroyForcibly);
    // Nothing of the program may keep it.
    Runtime.getRuntime().halt(KILLED);
  }
}
