package slackline.hadoop;

import org.apache.hadoop.mapred.JobConf;

/** A program as it comes in a jar: says what its jobs would be submitted with. */
final class FakeMain {
  private FakeMain() {}

  public static void main(String[] arguments) {
    JobConf conf = new JobConf();
    for (String name : new String[] {"mapreduce.job.queuename", "mapreduce.job.priority", "mapreduce.job.tags", "k",
        "slackline.site"}) {
      System.out.println(name + " " + conf.get(name));
    }
    System.err.println(String.join("|", arguments));
    System.exit(4);
  }
}
