package slackline.hadoop;

import java.util.List;
import java.util.stream.Stream;

/** The end of processes. */
final class Processes {
  private Processes() {}

  /** Kills a process with all that it started. They are found first: an orphan could not be. */
  static void killTree(Process process) {
    List<ProcessHandle> all = Stream.concat(Stream.of(process.toHandle()), process.descendants()).toList();
    all.forEach(ProcessHandle::destroyForcibly);
  }
}
