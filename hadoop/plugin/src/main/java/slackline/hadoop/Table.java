package slackline.hadoop;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.IntSupplier;
import java.util.regex.Pattern;

/** What one table says, as it was parsed. The format is published in docs/hadoop-table.md. */
final class Table {
  /** What a container is for. */
  enum Kind { MASTER, MAP, REDUCE }

  /** The sentence about an application. A cap of -1 is none; hosts that are null are all. */
  static final class Row {
    private final boolean held;
    private final int mapMax;
    private final int reduceMax;
    private final Set<String> mapHosts;
    private final Set<String> reduceHosts;

    private Row(String[] fields) {
      held = number(fields[1], "am_hold", 0, 1) == 1;
      mapMax = (int) number(fields[2], "map_max", -1, Integer.MAX_VALUE);
      reduceMax = (int) number(fields[3], "reduce_max", -1, Integer.MAX_VALUE);
      mapHosts = hosts(fields[4], "map_hosts");
      reduceHosts = hosts(fields[5], "reduce_hosts");
    }

    /** Whether one more container of a kind may start on a host; `live` counts those that are there. */
    boolean allows(Kind kind, String host, IntSupplier live) {
      if (kind == Kind.MASTER) {
        return !held;
      }
      Set<String> hosts = kind == Kind.MAP ? mapHosts : reduceHosts;
      int max = kind == Kind.MAP ? mapMax : reduceMax;
      return (hosts == null || hosts.contains(host)) && (max < 0 || live.getAsInt() < max);
    }
  }

  private static final Pattern APPLICATION = Pattern.compile("application_[0-9]+_[0-9]+|\\*");

  /** The number of the table, which its writer counts. */
  final long sequence;
  /** The instant from which on the table says nothing any more, in milliseconds since 1970. */
  final long expires;
  private final Map<String, Row> rows = new HashMap<>();

  /** The whole text or nothing: half a table would give the slots of some to the others. */
  static Table parse(String text) {
    String[] lines = text.split("\n", -1);
    int at = 0;
    try {
      Table table = new Table(lines[0]);
      int end = lines.length - 2; // after the line feed of the last line comes nothing
      at = lines.length - 1;
      require(end > 0 && lines[end + 1].isEmpty(), "the file is cut off, its last line has to be `end ROWS`");
      for (at = 1; at < end; at++) {
        table.add(lines[at]);
      }
      require(lines[end].equals("end " + (end - 1)), "expected `end " + (end - 1) + "`, found `" + lines[end] + "`");
      return table;
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("line " + (at + 1) + ": " + e.getMessage());
    }
  }

  private Table(String line) {
    String[] fields = line.split(" ", -1);
    require(fields.length == 4 && fields[0].equals("slackline") && fields[1].equals("1"),
        "expected `slackline 1 SEQUENCE EXPIRES`, found `" + line + "`");
    sequence = number(fields[2], "the sequence", 0, Long.MAX_VALUE);
    expires = number(fields[3], "the expiry", 0, Long.MAX_VALUE);
  }

  private void add(String line) {
    String[] fields = line.split(" ", -1);
    require(fields.length == 6, "expected 6 fields, found `" + line + "`");
    require(APPLICATION.matcher(fields[0]).matches(), "expected an application or *, found `" + fields[0] + "`");
    require(rows.put(fields[0], new Row(fields)) == null, "a second row for " + fields[0]);
  }

  /** The row of an application, else that of all others, else null. */
  Row row(String application) {
    Row row = rows.get(application);
    return row != null ? row : rows.get("*");
  }

  int size() {
    return rows.size();
  }

  private static long number(String field, String name, long least, long most) {
    // What Java also takes, such as +1 and digits of other scripts, is not in the format.
    require(field.matches("-?[0-9]{1,18}"), name + " has to be a whole number, found `" + field + "`");
    long value = Long.parseLong(field);
    require(least <= value && value <= most, name + " cannot be " + value);
    return value;
  }

  private static Set<String> hosts(String field, String name) {
    Set<String> hosts = new HashSet<>(Arrays.asList(field.split(",", -1)));
    boolean all = field.equals("*");
    require(all || !hosts.contains("") && !hosts.contains("*"),
        name + " has to be * or names with commas between them, found `" + field + "`");
    return all ? null : hosts;
  }

  private static void require(boolean holds, String otherwise) {
    if (!holds) {
      throw new IllegalArgumentException(otherwise);
    }
  }
}
