package slackline.hadoop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class FrameTest {
  private static DataInputStream input(byte[] bytes) {
    return new DataInputStream(new ByteArrayInputStream(bytes));
  }

  @Test
  void frames_are_a_tag_a_length_and_bytes_big_endian() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream output = new DataOutputStream(bytes);
    Frame.write(output, 258, new byte[] {7, 8, 9}, 2);
    Frame.write(output, Frame.PART, new byte[0], 0);
    assertArrayEquals(new byte[] {0, 0, 1, 2, 0, 0, 0, 2, 7, 8, -1, -1, -1, -2, 0, 0, 0, 0}, bytes.toByteArray());

    DataInputStream input = input(bytes.toByteArray());
    Frame first = Frame.read(input);
    assertEquals(258, first.tag());
    assertArrayEquals(new byte[] {7, 8}, first.bytes());
    assertEquals(Frame.PART, Frame.read(input).tag());
    assertNull(Frame.read(input));
    for (int length = 1; length < 10; length++) {
      byte[] cut = Arrays.copyOf(bytes.toByteArray(), length);
      assertThrows(IOException.class, () -> Frame.read(input(cut)), "cut to " + length);
    }
  }

  @Test
  void a_length_out_of_range_is_refused_before_memory_is_taken() {
    for (byte high : new byte[] {1, 127, -1}) {
      assertThrows(IOException.class, () -> Frame.read(input(new byte[] {0, 0, 0, 0, high, 0, 0, 1})));
    }
  }
}
