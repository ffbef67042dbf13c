package slackline.hadoop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.mapred.JobConf;

/**
 * A program as it comes in a jar: says what its jobs would be submitted with. With the argument `wait` it does not end,
 * and with `read-and-wait` it reads its standard input to the end and makes a file before that.
 */
final class FakeMain {
  private FakeMain() {}

  public static void main(String[] arguments) throws IOException, InterruptedException {
    if (arguments[0].equals("read-and-wait")) {
      System.in.readAllBytes();
      Files.createFile(Path.of(arguments[1]));
      Thread.sleep(Long.MAX_VALUE);
    }
    if (arguments[0].equals("wait")) {
      Thread.sleep(Long.MAX_VALUE);
    }
    JobConf conf = new JobConf();
    for (String name : new String[] {"mapreduce.job.queuename", "mapreduce.job.priority", "mapreduce.job.tags", "k",
        "slackline.site"}) {
      System.out.println(name + " " + conf.get(name));
    }
    System.err.println(String.join("|", arguments));
    System.exit(4);
  }
}
