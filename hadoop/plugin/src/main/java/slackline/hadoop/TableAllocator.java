package slackline.hadoop;

import java.util.Optional;

import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AppSchedulingInfo;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.NodeType;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.activities.DiagnosticsCollector;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.SchedulingMode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.LocalityAppPlacementAllocator;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hadoop's own placement, which also refuses what Slackline's table refuses. The CapacityScheduler creates an object for
 * each kind of container that an application requests. After any error in this class, Hadoop's own answer is used.
 */
public final class TableAllocator<N extends SchedulerNode> extends LocalityAppPlacementAllocator<N> {
  private static final Logger LOG = LoggerFactory.getLogger(TableAllocator.class);
  private static final String MAPREDUCE = "MAPREDUCE";
  private static volatile String failure = "";

  private TableReader reader;
  private String application;
  private Table.Kind kind;

  @Override
  public void initialize(AppSchedulingInfo app, SchedulerRequestKey key, RMContext context) {
    super.initialize(app, key, context);
    try {
      RMApp submitted = context.getRMApps().get(app.getApplicationId());
      kind = submitted == null ? null : kind(submitted.getApplicationType(), key.getPriority().getPriority());
      application = app.getApplicationId().toString();
      String file = context.getYarnConfiguration().get("slackline.table");
      if (file == null || !file.startsWith("/")) {
        failed("slackline.table has to be an absolute path in yarn-site.xml, found " + file);
      } else {
        reader = TableReader.of(file);
      }
    } catch (RuntimeException | LinkageError e) {
      failed(e.toString());
    }
  }

  /** Saves the scheduler proposals that would be refused in the end. */
  @Override
  public boolean precheckNode(SchedulerNode node, SchedulingMode mode, Optional<DiagnosticsCollector> diagnostics) {
    return super.precheckNode(node, mode, diagnostics) && allowed(node);
  }

  @Override
  public boolean precheckNode(SchedulerNode node, SchedulingMode mode) {
    return super.precheckNode(node, mode) && allowed(node);
  }

  /** Is asked when a proposal is carried out, one after the other: this alone makes caps exact with several threads. */
  @Override
  public boolean canAllocate(NodeType type, SchedulerNode node) {
    return super.canAllocate(type, node) && allowed(node);
  }

  private boolean allowed(SchedulerNode node) {
    try {
      Table table = kind == null || reader == null ? null : reader.table();
      Table.Row row = table == null ? null : table.row(application);
      return row == null || row.allows(kind, node.getNodeID().getHost(), this::live);
    } catch (RuntimeException | LinkageError e) {
      failed(e.toString());
      return true;
    }
  }

  /**
   * How many containers of this kind the application has, from the grant until the node says that they ended. Takes no lock:
   * the scheduler asks while it holds the lock of the AppSchedulingInfo, and a commit takes that of the attempt first, so
   * that getLiveContainers() would sooner or later stop the whole ResourceManager.
   */
  private int live() {
    AbstractYarnScheduler<?, ?> scheduler = (AbstractYarnScheduler<?, ?>) rmContext.getScheduler();
    int count = 0;
    for (RMContainer container : scheduler
        .getApplicationAttempt(appSchedulingInfo.getApplicationAttemptId()).getLiveContainersMap().values()) {
      if (kind(MAPREDUCE, container.getAllocatedPriority().getPriority()) == kind) {
        count++;
      }
    }
    return count;
  }

  /**
   * What a container is for: MapReduce says it by the priority of its request (RMContainerAllocator, RMAppAttemptImpl).
   * Null is what the table cannot speak of, such as executors of Spark, which have the priority of a master.
   */
  static Table.Kind kind(String applicationType, int priority) {
    if (!MAPREDUCE.equals(applicationType)) {
      return null;
    }
    switch (priority) {
      case 0:
        return Table.Kind.MASTER;
      case 5: // a map that failed before
      case 19: // an opportunistic one
      case 20:
        return Table.Kind.MAP;
      case 10:
        return Table.Kind.REDUCE;
      default:
        return null;
    }
  }

  /** Logs a reason only if it differs from the previous one: there are hundreds of calls a second. */
  private static void failed(String reason) {
    if (!reason.equals(failure)) {
      failure = reason;
      LOG.warn("Slackline: Hadoop schedules as usual: {}", reason);
    }
  }
}
