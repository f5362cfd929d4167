#include "borrow.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "descriptor.h"
#include "host.h"
#include "loop.h"
#include "notice.h"
#include "text.h"

enum {
  /* One for each supervisor, and for as long as anything lives that it started. */
  MOST_LISTENERS = 1024,
  /* A call that waits for a lender fails after this time. */
  PATIENCE_MS = 5000,
  /* How often the host is asked for one. */
  ASK_AGAIN_MS = 1000,
  /* In one turn of the loop. */
  MOST_REFUSED = 1024,
};

static bool is_active;
static struct watch lender = {.fd = -1};
static struct watch listeners[MOST_LISTENERS];
static uint32_t listener_count; /* places that were ever used */
static uint64_t waiting_since_ms, asked_ms; /* 0: no call waits; the host was not asked */

/* A listener that installs a descriptor and answers with it in one step is there since Linux 5.14. */
static bool kernel_has_it(void) {
  struct utsname name;
  uint32_t action = SECCOMP_RET_USER_NOTIF;
  uint64_t major, minor;
  if (syscall(SYS_uname, &name) != 0) return false;
  const char *at = name.release;
  if (!text_read_number(&at, &major) || *at++ != '.' || !text_read_number(&at, &minor)) return false;
  if (major < 5 || (major == 5 && minor < 14)) return false;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

void borrow_prepare(void) { is_active = kernel_has_it(); }
bool borrow_is_active(void) { return is_active; }

static bool has_call(int fd) {
  struct pollfd look = {.fd = fd, .events = POLLIN};
  return poll(&look, 1, 0) > 0 && (look.revents & POLLIN) != 0;
}

/* The descriptor of a filter that no process has any more is of no use. */
static void on_call(struct watch *watch, uint32_t events) {
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    loop_close(watch);
    return;
  }
  /* It waits, and would wake the loop for ever. */
  loop_want(watch, 0);
  if (waiting_since_ms == 0) waiting_since_ms = loop_now_ms();
}

static void await_calls(void) {
  waiting_since_ms = asked_ms = 0;
  for (struct watch *w = listeners; w < listeners + listener_count; w++) loop_want(w, EPOLLIN);
}

static void lender_gone(void) {
  loop_close(&lender);
  await_calls();
}

/* A lender has nothing to say, so this is its end. */
static void on_lender(struct watch *watch, uint32_t events) {
  (void)events;
  char byte;
  long got = read(watch->fd, &byte, 1);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  lender_gone();
}

static void hand_over(struct watch *watch) {
  loop_want(watch, 0);
  /* One that does not take it is as good as gone. */
  if (!descriptor_send(lender.fd, "", 1, watch->fd)) lender_gone();
}

void borrow_listener(int fd) {
  struct watch *place = NULL;
  for (struct watch *w = listeners; w < listeners + listener_count && place == NULL; w++) {
    if (w->fd < 0) place = w;
  }
  if (place == NULL && listener_count < MOST_LISTENERS) place = &listeners[listener_count++];
  if (place == NULL) {
    /* Without a listener the calls fail: no such call. */
    close(fd);
    return;
  }
  loop_add(place, fd, EPOLLIN, on_call);
  if (lender.fd >= 0) hand_over(place);
}

void borrow_lender(int fd) {
  if (lender.fd >= 0) {
    close(fd);
    return;
  }
  loop_add(&lender, fd, EPOLLIN, on_lender);
  waiting_since_ms = asked_ms = 0;
  for (struct watch *w = listeners; w < listeners + listener_count && lender.fd >= 0; w++) {
    if (w->fd >= 0) hand_over(w);
  }
}

static void refuse_call(int fd) {
  union {
    struct seccomp_notif call;
    uint8_t room[256]; /* a later kernel may have more to say */
  } notification = {0};
  if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0) return;
  struct seccomp_notif_resp answer = {.id = notification.call.id, .error = -EMFILE};
  ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void refuse_all(void) {
  uint32_t most = MOST_REFUSED;
  for (struct watch *w = listeners; w < listeners + listener_count; w++) {
    while (w->fd >= 0 && most > 0 && has_call(w->fd)) {
      refuse_call(w->fd);
      most--;
    }
  }
  await_calls();
}

int borrow_pump(uint64_t now_ms) {
  if (waiting_since_ms == 0) return -1;
  if (now_ms >= waiting_since_ms + PATIENCE_MS) {
    refuse_all();
    return -1;
  }
  if (host_present() && (asked_ms == 0 || now_ms >= asked_ms + ASK_AGAIN_MS)) {
    asked_ms = now_ms;
    notice(NOTICE_LENDER_WANTED, 0, "a program waits for a lender");
  }
  return (int)(waiting_since_ms + PATIENCE_MS - now_ms);
}
