#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

static void check_content(void) {
  char bytes[16] = "";
  struct stat facts;
  int fd = open("file", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
  MUST(fd >= 0);
  MUST(open("file", O_RDWR | O_CREAT | O_EXCL, 0640) == -1 && errno == EEXIST);
  MUST(write(fd, "hello world", 11) == 11);
  MUST(pwrite(fd, "HE", 2, 0) == 2);
  MUST(lseek(fd, 1, SEEK_SET) == 1);
  struct iovec parts[2] = {{bytes, 4}, {bytes + 8, 3}};
  MUST(readv(fd, parts, 2) == 7 && memcmp(bytes, "Ello", 4) == 0 && memcmp(bytes + 8, " wo", 3) == 0);
  MUST(ftruncate(fd, 5) == 0 && fstat(fd, &facts) == 0 && facts.st_size == 5);
  MUST(S_ISREG(facts.st_mode) && (facts.st_mode & 07777) == 0640);
  MUST(fchmod(fd, 0600) == 0 && chmod("file", 0604) == 0 && stat("file", &facts) == 0 && (facts.st_mode & 07777) == 0604);
  struct timespec times[2] = {{1000, 5}, {2000, 7}};
  MUST(futimens(fd, times) == 0 && fstat(fd, &facts) == 0);
  MUST(facts.st_atim.tv_sec == 1000 && facts.st_mtim.tv_sec == 2000 && facts.st_mtim.tv_nsec == 7);
  MUST(close(fd) == 0);
  MUST(close(fd) == -1 && errno == EBADF);
}

static void check_names(void) {
  char target[16] = "";
  struct stat facts;
  MUST(stat("none", &facts) == -1 && errno == ENOENT);
  MUST(symlink("file", "link") == 0 && readlink("link", target, sizeof target) == 4 && strcmp(target, "file") == 0);
  MUST(lstat("link", &facts) == 0 && S_ISLNK(facts.st_mode));
  MUST(stat("link", &facts) == 0 && S_ISREG(facts.st_mode));
  MUST(rename("link", "moved") == 0 && unlink("moved") == 0 && lstat("moved", &facts) == -1);
  MUST(mkdir("folder", 0711) == 0 && stat("folder", &facts) == 0 && (facts.st_mode & 07777) == 0711);
  int folder = open("folder", O_PATH | O_DIRECTORY | O_CLOEXEC);
  MUST(folder >= 0);
  MUST(linkat(AT_FDCWD, "file", folder, "second", 0) == 0 && fstatat(folder, "second", &facts, 0) == 0 && facts.st_nlink == 2);
  MUST(symlinkat("x", folder, "third") == 0 && readlinkat(folder, "third", target, sizeof target) == 1);
  struct timespec times[2] = {{1, 0}, {3000, 0}};
  MUST(utimensat(folder, "third", times, AT_SYMLINK_NOFOLLOW) == 0);
  MUST(fstatat(folder, "third", &facts, AT_SYMLINK_NOFOLLOW) == 0 && facts.st_mtim.tv_sec == 3000);
  MUST(renameat(folder, "third", AT_FDCWD, "out") == 0 && mkdirat(folder, "inner", 0755) == 0);
  MUST(mknod("plain", S_IFREG | 0600, 0) == 0);
  MUST(unlinkat(folder, "inner", 0) == -1 && errno == EISDIR && unlinkat(folder, "inner", AT_REMOVEDIR) == 0);
  MUST(fchdir(folder) == 0 && stat("second", &facts) == 0 && chdir("..") == 0 && close(folder) == 0);
}

/* More entries than one call returns, twice. */
static void check_directory(void) {
  enum { MANY = 300 };
  char name[] = "entry-000-with-a-name-of-some-length";
  MUST(mkdir("many", 0700) == 0 && chdir("many") == 0);
  for (int i = 0; i < MANY; i++) {
    name[6] = (char)('0' + i / 100);
    name[7] = (char)('0' + i / 10 % 10);
    name[8] = (char)('0' + i % 10);
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    MUST(fd >= 0 && close(fd) == 0);
  }
  DIR *directory = opendir(".");
  MUST(directory != NULL);
  for (int turn = 0; turn < 2; turn++) {
    static uint8_t seen[MANY];
    int count = 0;
    memset(seen, 0, sizeof seen);
    errno = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
      if (entry->d_name[0] == '.') continue;
      MUST(strlen(entry->d_name) == sizeof name - 1 && entry->d_type == DT_REG);
      int index = (entry->d_name[6] - '0') * 100 + (entry->d_name[7] - '0') * 10 + entry->d_name[8] - '0';
      MUST(index >= 0 && index < MANY && seen[index]++ == 0);
      count++;
    }
    MUST(errno == 0 && count == MANY);
    rewinddir(directory);
  }
  MUST(closedir(directory) == 0 && chdir("..") == 0);
  MUST(opendir("file") == NULL && errno == ENOTDIR);
  int fd = open("file", O_RDONLY);
  directory = fdopendir(fd);
  MUST(directory != NULL && readdir(directory) == NULL && errno == ENOTDIR && closedir(directory) == 0);
}

void check_files(void) {
  umask(0);
  MUST(umask(022) == 0 && umask(0) == 022);
  check_content();
  check_names();
  check_directory();
}
