#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
  struct text at = {.data = path, .capacity = sizeof path};
  text_add(&at, "/proc/");
  text_number(&at, (uint64_t)pid);
  text_add(&at, "/");
  text_add(&at, name);
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
  const char *after = strrchr(text, ')');
  if (after == NULL || after[1] != ' ' || after[2] == '\0') return false;
  char state = after[2];
  const char *rest = after + 3;
  uint64_t parent;
  if (!text_read_number(&rest, &parent)) return false;
  *process = (struct process){.pid = pid, .parent = (pid_t)parent, .dead = state == 'Z' || state == 'X'};
  return true;
}

pid_t tree_parent(pid_t pid) {
  struct process process;
  return read_process(pid, &process) ? process.parent : -1;
}

static bool add_row(struct table *table, pid_t pid) {
  if (table->length == table->capacity) {
    size_t capacity = table->capacity == 0 ? 64 : table->capacity * 2;
    struct process *rows = realloc(table->rows, capacity * sizeof *rows);
    if (rows == NULL) return false;
    table->rows = rows;
    table->capacity = capacity;
  }
  errno = 0;
  if (read_process(pid, &table->rows[table->length])) table->length++;
  /* One that went meanwhile is missing rightly. One that could not be looked at for want of a descriptor is not. */
  return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
}

static bool read_table(struct table *table) {
  table->length = 0;
  DIR *proc = opendir("/proc");
  if (proc == NULL) return false;
  bool whole = true;
  for (struct dirent *entry; whole && (entry = readdir(proc)) != NULL;) {
    const char *name = entry->d_name;
    uint64_t pid;
    if (text_read_number(&name, &pid)) whole = add_row(table, (pid_t)pid);
  }
  closedir(proc);
  return whole;
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
  const char *at = text;
  uint64_t size, resident;
  if (!read_file(pid, "statm", text, sizeof text)) return 0;
  if (!text_read_number(&at, &size) || !text_read_number(&at, &resident)) return 0;
  return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool tree_count(pid_t root, bool with_memory, struct tree_count *count) {
  struct table table = {0};
  *count = (struct tree_count){0};
  bool whole = read_table(&table);
  mark(&table, root, NULL);
  for (size_t i = 0; i < table.length; i++) {
    if (!table.rows[i].inside || table.rows[i].dead) continue;
    count->alive++;
    if (with_memory) count->resident_bytes += resident_bytes(table.rows[i].pid);
  }
  free(table.rows);
  return whole;
}

bool tree_signal(pid_t root, int signal) {
  struct table table = {0};
  bool whole = read_table(&table);
  mark(&table, root, NULL);
  for (size_t i = 0; i < table.length; i++) {
    if (table.rows[i].inside && !table.rows[i].dead) kill(table.rows[i].pid, signal);
  }
  free(table.rows);
  return whole;
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

static bool kill_below(pid_t root, int (*is_known)(pid_t pid), uint32_t *found) {
  struct table table = {0}, before = {0};
  bool whole = true;
  for (int round = 0; round < MOST_ROUNDS; round++) {
    whole = read_table(&table);
    mark(&table, root, is_known);
    bool any = stop_new(&table, &before);
    if (!any || !whole) break;
    struct table swap = before;
    before = table;
    table = swap;
  }
  *found = 0;
  for (size_t i = 0; i < table.length; i++) {
    if (!table.rows[i].inside || table.rows[i].dead) continue;
    kill(table.rows[i].pid, SIGKILL);
    (*found)++;
  }
  free(table.rows);
  free(before.rows);
  return whole;
}

bool tree_kill(pid_t root, uint32_t *found) { return kill_below(root, NULL, found); }

bool tree_kill_strangers(int (*is_known)(pid_t pid), uint32_t *found) { return kill_below(getpid(), is_known, found); }
