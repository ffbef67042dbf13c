package slackline.hadoop;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.mockito.Mockito.RETURNS_DEEP_STUBS;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AppSchedulingInfo;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.NodeType;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerApplicationAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.SchedulingMode;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The class as the scheduler meets it, with an application that asks for one container of each priority. */
@Timeout(120)
final class TableAllocatorTest {
  private static final ApplicationId ID = ApplicationId.newInstance(1_700_000_000_000L, 7);

  @TempDir
  Path directory;
  private final Configuration configuration = new Configuration(false);
  private final RMContext context = mock(RMContext.class);
  private final AppSchedulingInfo app = mock(AppSchedulingInfo.class, RETURNS_DEEP_STUBS);
  private final AbstractYarnScheduler<?, ?> scheduler = mock(AbstractYarnScheduler.class);
  private final Map<ContainerId, RMContainer> live = new ConcurrentHashMap<>();
  private final RMApp submitted = mock(RMApp.class);

  @BeforeEach
  void a_cluster() {
    ApplicationAttemptId attempt = ApplicationAttemptId.newInstance(ID, 1);
    SchedulerApplicationAttempt running = mock(SchedulerApplicationAttempt.class);
    when(running.getLiveContainersMap()).thenReturn(live);
    // Its lock is never taken: precheckNode() is called under that of the AppSchedulingInfo, which a commit takes second.
    when(running.getLiveContainers()).thenThrow(new AssertionError("this waits for the lock of the attempt"));
    when(app.getApplicationId()).thenReturn(ID);
    when(app.getApplicationAttemptId()).thenReturn(attempt);
    when(submitted.getApplicationType()).thenReturn("MAPREDUCE");
    ConcurrentHashMap<ApplicationId, RMApp> apps = new ConcurrentHashMap<>(Collections.singletonMap(ID, submitted));
    when(context.getRMApps()).thenReturn(apps);
    when(context.getYarnConfiguration()).thenReturn(configuration);
    when(context.getScheduler()).thenReturn(scheduler);
    when(scheduler.getApplicationAttempt(attempt)).thenAnswer(call -> running);
    configuration.set("slackline.table", directory.resolve("table").toString());
  }

  private void table(String row) throws IOException {
    Path file = directory.resolve("table");
    long expires = System.currentTimeMillis() + 3_000_000;
    Files.write(file, ("slackline 1 1 " + expires + "\n" + ID + " " + row + "\nend 1\n").getBytes(UTF_8));
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    while (TableReader.of(file.toString()).table() == null) {
      Thread.yield(); // until its thread has looked
    }
  }

  private void runs(int priority) {
    RMContainer container = mock(RMContainer.class);
    when(container.getAllocatedPriority()).thenReturn(Priority.newInstance(priority));
    ContainerId id = ContainerId.newContainerId(ApplicationAttemptId.newInstance(ID, 1), live.size() + 1);
    live.put(id, container);
  }

  /** What the three questions of the scheduler have for an answer; they have to agree. */
  private boolean allowed(int priority, String host) {
    TableAllocator<SchedulerNode> allocator = new TableAllocator<>();
    SchedulerRequestKey key = SchedulerRequestKey.create(
        ResourceRequest.newInstance(Priority.newInstance(priority), "*", Resource.newInstance(512, 1), 1));
    allocator.initialize(app, key, context);
    allocator.updatePendingAsk(Collections.singletonList(
        ResourceRequest.newInstance(Priority.newInstance(priority), "*", Resource.newInstance(512, 1), 1)), false);
    SchedulerNode node = mock(SchedulerNode.class);
    when(node.getNodeID()).thenReturn(NodeId.newInstance(host, 1));
    when(node.getPartition()).thenReturn("");
    boolean answer = allocator.canAllocate(NodeType.OFF_SWITCH, node);
    assertEquals(answer, allocator.precheckNode(node, SchedulingMode.RESPECT_PARTITION_EXCLUSIVITY));
    assertEquals(answer, allocator.precheckNode(node, SchedulingMode.RESPECT_PARTITION_EXCLUSIVITY, Optional.empty()));
    return answer;
  }

  @Test
  void maps_of_all_priorities_share_a_cap() throws IOException {
    table("0 3 -1 * *");
    runs(0);
    runs(10);
    runs(5);
    runs(19);
    assertEquals(true, allowed(20, "a"));
    runs(20);
    assertEquals(false, allowed(20, "a"));
    assertEquals(false, allowed(5, "a"));
    assertEquals(true, allowed(10, "a"));
    assertEquals(true, allowed(0, "a"));
  }

  @Test
  void hosts_are_those_of_the_node_id() throws IOException {
    table("0 -1 -1 127.0.0.2 127.0.0.3");
    assertEquals(true, allowed(20, "127.0.0.2"));
    assertEquals(false, allowed(20, "127.0.0.3"));
    assertEquals(true, allowed(10, "127.0.0.3"));
    assertEquals(false, allowed(10, "127.0.0.2"));
  }

  @Test
  void a_held_master_waits() throws IOException {
    table("1 -1 -1 * *");
    assertEquals(false, allowed(0, "a"));
  }

  @Test
  void applications_of_other_types_are_never_touched() throws IOException {
    table("1 0 0 none none");
    when(submitted.getApplicationType()).thenReturn("SPARK");
    assertEquals(true, allowed(0, "a"));
    assertEquals(true, allowed(10, "a"));
    assertNull(TableAllocator.kind("MAPREDUCE", 7));
  }

  @Test
  void without_a_table_without_its_path_or_without_what_it_needs_hadoop_decides() throws IOException {
    runs(20);
    assertEquals(true, allowed(20, "a"), "no table");
    table("1 0 0 none none");
    configuration.set("slackline.table", "relative");
    assertEquals(true, allowed(20, "a"), "no absolute path");
    configuration.unset("slackline.table");
    assertEquals(true, allowed(20, "a"), "no property");
    configuration.set("slackline.table", "/\0");
    assertEquals(true, allowed(20, "a"), "no path at all");
    when(context.getRMApps()).thenThrow(new IllegalStateException("of another version"));
    assertEquals(true, allowed(20, "a"), "no application");
  }

  @Test
  void what_fails_while_counting_refuses_nothing() throws IOException {
    table("0 1 1 * *");
    runs(20);
    assertEquals(false, allowed(20, "a"));
    when(context.getScheduler()).thenThrow(new NoSuchMethodError("of another version"));
    assertEquals(true, allowed(20, "a"));
  }
}
