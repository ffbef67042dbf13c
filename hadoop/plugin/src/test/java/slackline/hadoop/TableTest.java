package slackline.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class TableTest {
  private static final String APP = "application_1700000000000_0007";

  private static Table.Row row(String fields) {
    return Table.parse("slackline 1 1 1\n" + APP + " " + fields + "\nend 1\n").row(APP);
  }

  private static boolean allows(Table.Row row, Table.Kind kind, String host, int live) {
    return row.allows(kind, host, () -> live);
  }

  @Test
  void caps_count_maps_and_reduces_apart() {
    Table.Row row = row("0 3 0 * *");
    assertTrue(allows(row, Table.Kind.MAP, "a", 2));
    assertFalse(allows(row, Table.Kind.MAP, "a", 3));
    assertFalse(allows(row, Table.Kind.MAP, "a", 4));
    assertFalse(allows(row, Table.Kind.REDUCE, "a", 0));
    assertTrue(allows(row, Table.Kind.MASTER, "a", 9));
  }

  @Test
  void no_cap_is_no_cap_and_counts_nothing() {
    Table.Row row = row("0 -1 -1 * *");
    assertTrue(row.allows(Table.Kind.MAP, "a", () -> { throw new AssertionError("counted"); }));
    assertTrue(row.allows(Table.Kind.REDUCE, "a", () -> { throw new AssertionError("counted"); }));
  }

  @Test
  void hosts_are_names_of_one_phase() {
    Table.Row row = row("0 -1 -1 10.0.0.1,b *");
    assertTrue(allows(row, Table.Kind.MAP, "10.0.0.1", 0));
    assertTrue(allows(row, Table.Kind.MAP, "b", 0));
    assertFalse(allows(row, Table.Kind.MAP, "10.0.0.10", 0));
    assertTrue(allows(row, Table.Kind.REDUCE, "c", 0));
    assertTrue(allows(row, Table.Kind.MASTER, "c", 0));
  }

  @Test
  void a_hold_is_about_the_master_alone() {
    Table.Row row = row("1 -1 -1 * *");
    assertFalse(allows(row, Table.Kind.MASTER, "a", 0));
    assertTrue(allows(row, Table.Kind.MAP, "a", 0));
  }

  @Test
  void the_star_speaks_for_who_has_no_row() {
    Table table = Table.parse("slackline 1 42 99\n* 1 -1 -1 * *\n" + APP + " 0 -1 -1 * *\nend 2\n");
    assertTrue(allows(table.row(APP), Table.Kind.MASTER, "a", 0));
    assertFalse(allows(table.row("application_1700000000000_0008"), Table.Kind.MASTER, "a", 0));
    assertEquals(42, table.sequence);
    assertEquals(99, table.expires);
    assertEquals(2, table.size());
  }

  @Test
  void an_empty_table_says_nothing() {
    assertNull(Table.parse("slackline 1 1 1\nend 0\n").row(APP));
  }

  /** `/` stands for a line feed, `A` for an application. */
  @ParameterizedTest
  @CsvSource(delimiter = '|', quoteCharacter = '"', value = {
    "\"\"                                        | line 1",
    "slackline 2 1 1/end 0/                      | line 1",
    "slackline 1 1/end 0/                        | line 1",
    "slackline 1 x 1/end 0/                      | line 1: the sequence",
    "slackline 1 1 -1/end 0/                     | line 1: the expiry",
    "slackline 1 1 99999999999999999999/end 0/   | line 1: the expiry",
    "slackline 1 1 1                             | line 1",
    "slackline 1 1 1/                            | line 2: the file is cut off",
    "slackline 1 1 1/end 0                       | line 2: the file is cut off",
    "slackline 1 1 1/A 0 3 1 * */                | line 2: expected `end 0`",
    "slackline 1 1 1/A 0 3 1 * */A 1 3 1 * */end 2/ | line 3: a second row",
    "slackline 1 1 1/A 0 3 1 * */end 2/          | line 3: expected `end 1`",
    "slackline 1 1 1/A 0 3 1 * */end 1//         | line 3: expected 6 fields",
    "slackline 1 1 1/A 0 3 1 */end 1/            | line 2: expected 6 fields",
    "slackline 1 1 1/A  0 3 1 * */end 1/         | line 2: expected 6 fields",
    "slackline 1 1 1/job_1_1 0 3 1 * */end 1/    | line 2: expected an application",
    "slackline 1 1 1/A 2 3 1 * */end 1/          | line 2: am_hold cannot be 2",
    "slackline 1 1 1/A 0 -2 1 * */end 1/         | line 2: map_max cannot be -2",
    "slackline 1 1 1/A 0 3 2147483648 * */end 1/ | line 2: reduce_max cannot be 2147483648",
    "slackline 1 1 1/A 0 +3 1 * */end 1/         | line 2: map_max has to be a whole number",
    "slackline 1 1 1/A 0 3 1 a,,b */end 1/       | line 2: map_hosts",
    "slackline 1 1 1/A 0 3 1 * a,*/end 1/        | line 2: reduce_hosts",
  })
  void what_is_not_whole_is_refused_with_its_line(String text, String message) {
    String lines = text.replace('/', '\n').replace("A", APP);
    String found = assertThrows(IllegalArgumentException.class, () -> Table.parse(lines)).getMessage();
    assertTrue(found.startsWith(message), found);
  }
}
