package slackline.hadoop;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** The fields of a JSON object, checked as they are read. An object with others besides is refused. */
final class Fields {
  /** Reads one document, without keys that come twice and without anything behind it. */
  static final ObjectMapper JSON = new ObjectMapper()
      .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION)
      .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

  private final JsonNode object;
  private final TreeSet<String> known = new TreeSet<>();

  private Fields(JsonNode object) {
    this.object = object;
  }

  static Fields of(byte[] document) throws Failure {
    try {
      return of("a request", JSON.readTree(document));
    } catch (JsonProcessingException e) {
      throw Failure.refused("a request must be a JSON document: " + e.getOriginalMessage());
    } catch (IOException e) {
      throw Failure.refused("a request must be UTF-8: " + e.getMessage());
    }
  }

  private static Fields of(String what, JsonNode value) throws Failure {
    if (!value.isObject()) {
      throw Failure.refused(what + " must be an object, found " + shown(value));
    }
    return new Fields(value);
  }

  String text(String name) throws Failure {
    JsonNode value = take(name);
    return check(value, value.isTextual(), name, "a string").textValue();
  }

  /** Null if it is left out. */
  String textOrNull(String name) throws Failure {
    return isLeftOut(name) ? null : text(name);
  }

  long whole(String name, long least, long most) throws Failure {
    JsonNode value = take(name);
    boolean fits = value.isIntegralNumber() && value.canConvertToLong()
        && value.longValue() >= least && value.longValue() <= most;
    return check(value, fits, name, "a whole number from " + least + " to " + most).longValue();
  }

  int count(String name, int least) throws Failure {
    return (int) whole(name, least, Integer.MAX_VALUE);
  }

  /** Null if it is left out. */
  Integer countOrNull(String name) throws Failure {
    return isLeftOut(name) ? null : Integer.valueOf(count(name, 0));
  }

  /** Empty if it is left out. */
  List<String> texts(String name) throws Failure {
    List<String> texts = new ArrayList<>();
    if (!isLeftOut(name)) {
      JsonNode value = take(name);
      for (JsonNode item : check(value, value.isArray(), name, "an array of strings")) {
        texts.add(check(item, item.isTextual(), name, "an array of strings").textValue());
      }
    }
    return texts;
  }

  /** Empty if it is left out. */
  Map<String, String> properties(String name) throws Failure {
    Map<String, String> properties = new LinkedHashMap<>();
    if (!isLeftOut(name)) {
      JsonNode value = take(name);
      check(value, value.isObject(), name, "an object of strings");
      for (Map.Entry<String, JsonNode> field : (Iterable<Map.Entry<String, JsonNode>>) value::fields) {
        JsonNode text = field.getValue();
        check(text, text.isTextual() && !field.getKey().isEmpty(), name, "an object of strings");
        properties.put(field.getKey(), text.textValue());
      }
    }
    return properties;
  }

  Fields object(String name) throws Failure {
    return of('"' + name + '"', take(name));
  }

  /** To be called when all that is known was read. */
  void end() throws Failure {
    for (String name : (Iterable<String>) object::fieldNames) {
      if (!known.contains(name)) {
        throw Failure.refused("unknown field \"" + name + "\", expected " + String.join(", ", known));
      }
    }
  }

  private boolean isLeftOut(String name) {
    return take(name).isNull();
  }

  private JsonNode take(String name) {
    known.add(name);
    JsonNode value = object.get(name);
    return value == null ? JSON.nullNode() : value;
  }

  private static JsonNode check(JsonNode value, boolean holds, String name, String expected) throws Failure {
    if (!holds) {
      throw Failure.refused("\"" + name + "\" must be " + expected + ", found " + shown(value));
    }
    return value;
  }

  private static String shown(JsonNode value) {
    String text = value.isNull() || value.isMissingNode() ? "nothing" : value.toString();
    return text.length() <= 100 ? text : text.substring(0, 100) + "...";
  }
}
