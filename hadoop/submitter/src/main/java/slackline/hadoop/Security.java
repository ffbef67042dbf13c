package slackline.hadoop;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.security.UserGroupInformation.AuthenticationMethod;

/** Which clusters can be driven: those with simple authentication that are reached without encryption. */
final class Security {
  private Security() {}

  static void check(Configuration conf) throws Failure {
    AuthenticationMethod method;
    try {
      method = SecurityUtil.getAuthenticationMethod(conf);
    } catch (IllegalArgumentException e) {
      throw missing("hadoop.security.authentication", conf.get("hadoop.security.authentication"), "simple");
    }
    if (method != AuthenticationMethod.SIMPLE) {
      throw new Failure(Failure.Kind.SECURITY, "the cluster wants Kerberos (hadoop.security.authentication is "
          + conf.get("hadoop.security.authentication")
          + "): Slackline has neither a login with a keytab nor delegation tokens, it needs simple");
    }
    String protection = conf.getTrimmed("hadoop.rpc.protection", "authentication");
    if (!protection.contains("authentication")) {
      throw missing("hadoop.rpc.protection", protection, "authentication");
    }
    for (String policy : new String[] {"yarn.http.policy", "mapreduce.jobhistory.http.policy"}) {
      String value = conf.getTrimmed(policy, "HTTP_ONLY");
      if (value.equals("HTTPS_ONLY")) {
        throw missing(policy, value, "HTTP_ONLY or HTTP_AND_HTTPS, because Slackline speaks no TLS to a cluster");
      }
    }
  }

  private static Failure missing(String property, String found, String expected) {
    return new Failure(Failure.Kind.SECURITY, property + " is " + found + ", expected " + expected);
  }
}
