#include "tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "die.h"
#include "text.h"

enum { MOST_ROUNDS = 200 };

struct process {
  pid_t pid, parent;
  bool dead; /* a zombie: it holds nothing and cannot be killed again */
  bool inside;
  bool stopped;
};

struct table {
  struct process *rows;
  size_t length, capacity;
};

static bool read_file(pid_t pid, const char *name, char *text, size_t size) {
  char path[64];
  struct text t = {.data = path, .capacity = sizeof path};
  text_add(&t, "/proc/");
  text_number(&t, (uint64_t)pid);
  text_add(&t, "/");
  text_add(&t, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  long got = read(fd, text, size - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = '\0';
  return true;
}

/* "pid (name) state parent …": the name may hold anything, so what follows it is found from the right. */
static bool read_process(pid_t pid, struct process *process) {
  char text[512];
  if (!read_file(pid, "stat", text, sizeof text)) return false;
  char *after = strrchr(text, ')');
  if (after == NULL || strlen(after) < 5) return false;
  char state = after[2];
  pid_t parent = atoi(after + 4);
  *process = (struct process){.pid = pid, .parent = parent, .dead = state == 'Z' || state == 'X'};
  return true;
}

pid_t tree_parent(pid_t pid) {
  struct process process;
  return read_process(pid, &process) ? process.parent : -1;
}

static void read_table(struct table *table) {
  table->length = 0;
  DIR *proc = opendir("/proc");
  if (proc == NULL) die_errno("/proc");
  for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    if (table->length == table->capacity) {
      table->capacity = table->capacity == 0 ? 64 : table->capacity * 2;
      table->rows = realloc(table->rows, table->capacity * sizeof *table->rows);
      if (table->rows == NULL) die("out of memory");
    }
    if (read_process((pid_t)atoi(entry->d_name), &table->rows[table->length])) table->length++;
  }
  closedir(proc);
}

static struct process *find(struct table *table, pid_t pid) {
  for (size_t i = 0; i < table->length; i++) {
    if (table->rows[i].pid == pid) return &table->rows[i];
  }
  return NULL;
}

/* Marks the descendants of `root`, without the children that `is_known` knows and all below them: as long as a pass finds
 * one more, there may be more below it. */
static void mark(struct table *table, pid_t root, int (*is_known)(pid_t pid)) {
  for (bool found = true; found;) {
    found = false;
    for (size_t i = 0; i < table->length; i++) {
      struct process *p = &table->rows[i];
      if (p->inside || p->pid == root) continue;
      struct process *parent = p->parent == root ? NULL : find(table, p->parent);
      bool child = p->parent == root && (is_known == NULL || !is_known(p->pid));
      if (child || (parent != NULL && parent->inside)) p->inside = found = true;
    }
  }
}

static uint64_t resident_bytes(pid_t pid) {
  char text[128];
  /* "size resident …", in pages */
  const char *space = read_file(pid, "statm", text, sizeof text) ? strchr(text, ' ') : NULL;
  return space == NULL ? 0 : strtoull(space, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

struct tree_count tree_count(pid_t root, int with_memory) {
  struct table table = {0};
  struct tree_count count = {0};
  read_table(&table);
  mark(&table, root, NULL);
  for (size_t i = 0; i < table.length; i++) {
    if (!table.rows[i].inside || table.rows[i].dead) continue;
    count.alive++;
    if (with_memory) count.resident_bytes += resident_bytes(table.rows[i].pid);
  }
  free(table.rows);
  return count;
}

void tree_signal(pid_t root, int signal) {
  struct table table = {0};
  read_table(&table);
  mark(&table, root, NULL);
  for (size_t i = 0; i < table.length; i++) {
    if (table.rows[i].inside && !table.rows[i].dead) kill(table.rows[i].pid, signal);
  }
  free(table.rows);
}

/* Stops what is inside and was not stopped by an earlier walk; returns whether there was any. */
static bool stop_new(struct table *table, const struct table *before) {
  bool any = false;
  for (size_t i = 0; i < table->length; i++) {
    struct process *p = &table->rows[i];
    if (!p->inside || p->dead) continue;
    struct process *known = find((struct table *)before, p->pid);
    p->stopped = known != NULL && known->stopped;
    if (!p->stopped && kill(p->pid, SIGSTOP) == 0) p->stopped = any = true;
  }
  return any;
}

static uint32_t kill_below(pid_t root, int (*is_known)(pid_t pid)) {
  struct table table = {0}, before = {0};
  for (int round = 0; round < MOST_ROUNDS; round++) {
    read_table(&table);
    mark(&table, root, is_known);
    bool any = stop_new(&table, &before);
    if (!any) break;
    struct table swap = before;
    before = table;
    table = swap;
  }
  uint32_t killed = 0;
  for (size_t i = 0; i < table.length; i++) {
    if (!table.rows[i].inside || table.rows[i].dead) continue;
    kill(table.rows[i].pid, SIGKILL);
    killed++;
  }
  free(table.rows);
  free(before.rows);
  return killed;
}

uint32_t tree_kill(pid_t root) { return kill_below(root, NULL); }

uint32_t tree_kill_strangers(int (*is_known)(pid_t pid)) { return kill_below(getpid(), is_known); }
