package slackline.hadoop;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException;
import org.apache.hadoop.yarn.exceptions.YarnException;

/** Submits and kills. */
final class Applications {
  private final Configuration site;
  private final Configuration impatient;
  private YarnClient client;

  /** A configuration as the site has it, for jobs, and one that gives up soon, for requests of our own. */
  Applications(Configuration site, Configuration impatient) {
    this.site = site;
    this.impatient = impatient;
  }

  /** What runs jobs by a configuration: "local" where no files say otherwise. */
  static String framework(Configuration conf) {
    return conf.get("mapreduce.framework.name", "local");
  }

  ObjectNode submit(Fields request) throws Exception {
    Fields job = request.object("job");
    request.end();
    String framework = framework(site);
    if (!framework.equals("yarn")) {
      throw Failure.refused("mapreduce.framework.name is " + framework
          + ", expected yarn: is the cluster's configuration directory on the class path?");
    }
    // A job waits up to a quarter of an hour for a ResourceManager, so it is asked first whether it is there.
    client().getYarnClusterMetrics();
    try (Job submitted = Submission.job(site, job)) {
      submitted.submit();
      JobID id = submitted.getJobID();
      return Fields.JSON.createObjectNode()
          .put("application", ApplicationId.newInstance(Long.parseLong(id.getJtIdentifier()), id.getId()).toString())
          .put("job", id.toString());
    }
  }

  /** One that has ended already is fine. */
  ObjectNode kill(Fields request) throws IOException, YarnException {
    String name = request.text("application");
    request.end();
    ApplicationId application;
    try {
      application = ApplicationId.fromString(name);
    } catch (IllegalArgumentException e) {
      throw Failure.refused("\"application\" must be like application_1700000000000_0001, found " + name);
    }
    try {
      client().killApplication(application);
    } catch (ApplicationNotFoundException e) {
      throw Failure.refused("the cluster has no " + name);
    }
    return Fields.JSON.createObjectNode();
  }

  private synchronized YarnClient client() {
    if (client == null) {
      YarnClient made = YarnClient.createYarnClient();
      made.init(new YarnConfiguration(impatient));
      made.start();
      client = made;
    }
    return client;
  }
}
