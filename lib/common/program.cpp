// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <vector>

namespace ntb
{

namespace
{
struct Closer {
    int fd;
    ~Closer()
    {
        if (fd >= 0)
            close(fd);
    }
};

int can_execute(const std::string &path)
{
    struct stat status;
    if (stat(path.c_str(), &status) != 0)
        return errno;
    if (!S_ISREG(status.st_mode))
        return EACCES;
    return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

// As execvp(): the first that may be executed; else, of those that are there, what is wrong.
Program search(const std::string &name)
{
    Program found;
    if (name.find('/') != std::string::npos) {
        found.path = name;
        found.error = can_execute(name);
        return found;
    }
    const char *folders = getenv("PATH");
    std::string_view rest = folders != nullptr ? folders : "/bin:/usr/bin";
    found.error = ENOENT;
    for (bool more = !name.empty(); more;) {
        const size_t end = rest.find(':');
        const std::string_view folder = rest.substr(0, end);
        more = end != std::string_view::npos;
        rest = more ? rest.substr(end + 1) : std::string_view{};
        const std::string path = (folder.empty() ? "." : std::string(folder)) + "/" + name;
        const int error = can_execute(path);
        if (error == 0)
            return {0, path, false, ""};
        if (error == EACCES)
            found.error = error;
    }
    return found;
}

bool is_elf(const std::string &path)
{
    const Closer file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    char begin[SELFMAG];
    return pread(file.fd, begin, SELFMAG, 0) == SELFMAG && memcmp(begin, ELFMAG, SELFMAG) == 0;
}

bool read_at(int fd, void *to, size_t size, off_t offset)
{
    return pread(fd, to, size, offset) == static_cast<ssize_t>(size);
}

// What the dynamic linker makes of an executable of this machine.
std::string refusal_of_elf(int fd)
{
    Elf64_Ehdr header;
    Elf64_Ehdr own;
    const Closer self{open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
    if (!read_at(fd, &header, sizeof(header), 0) || !read_at(self.fd, &own, sizeof(own), 0))
        return "is no program that this machine executes";
    if (header.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || header.e_machine != own.e_machine)
        return "is of another kind of machine than what it would load";
    constexpr unsigned most = 256;
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > most)
        return "is no program that this machine executes";
    std::vector<Elf64_Phdr> parts(header.e_phnum);
    if (!read_at(fd, parts.data(), parts.size() * sizeof(parts[0]),
                 static_cast<off_t>(header.e_phoff)))
        return "is no program that this machine executes";
    for (const Elf64_Phdr &part : parts) {
        char linker[256] = {};
        if (part.p_type != PT_INTERP)
            continue;
        if (part.p_filesz >= sizeof(linker) ||
            !read_at(fd, linker, part.p_filesz, static_cast<off_t>(part.p_offset)))
            return "names no dynamic linker";
        if (strstr(linker, "ld-linux") == nullptr)
            return "is of another C library: " + std::string(linker);
        return "";
    }
    return "is static";
}

std::string refusal_of(const std::string &path, int scripts_left)
{
    const Closer file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    struct stat status;
    if (file.fd < 0 || fstat(file.fd, &status) != 0)
        return ""; // It may be executed, but not read: it is not known.
    if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid())
        return "is setuid";
    if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
        status.st_gid != getegid())
        return "is setgid";
    if (geteuid() != 0 && fgetxattr(file.fd, "security.capability", nullptr, 0) > 0)
        return "has file capabilities";
    char begin[256] = {};
    if (pread(file.fd, begin, sizeof(begin) - 1, 0) < SELFMAG)
        return "";
    if (memcmp(begin, ELFMAG, SELFMAG) == 0)
        return refusal_of_elf(file.fd);
    if (begin[0] != '#' || begin[1] != '!')
        return ""; // execvp() gives it to the shell.
    const char *name = begin + 2 + strspn(begin + 2, " \t");
    const std::string interpreter(name, strcspn(name, " \t\r\n"));
    if (scripts_left == 0)
        return "";
    const std::string refusal = refusal_of(interpreter, scripts_left - 1);
    return refusal.empty() ? "" : "has an interpreter, " + interpreter + ", that " + refusal;
}
} // namespace

Program find_program(const char *name)
{
    Program found = search(name);
    constexpr int nested_scripts = 4; // as many as the kernel follows
    if (found.error != 0)
        return found;
    found.elf = is_elf(found.path);
    found.refuses = refusal_of(found.path, nested_scripts);
    return found;
}

std::string beside_this_program(const std::string &place)
{
    char own[4096];
    const ssize_t size = readlink("/proc/self/exe", own, sizeof(own));
    if (place[0] == '/' || size <= 0 || size == sizeof(own))
        return place;
    const std::string path(own, static_cast<std::size_t>(size));
    return path.substr(0, path.rfind('/') + 1) + place;
}

bool can_be_preloaded(const std::string &library)
{
    return library.find_first_of(" :") == std::string::npos && access(library.c_str(), R_OK) == 0;
}

void preload(const std::string &library)
{
    const char *before = getenv("LD_PRELOAD");
    const std::string list = before == nullptr || *before == 0 ? library : before + (":" + library);
    setenv("LD_PRELOAD", list.c_str(), 1);
}

void set_path_variable(const char *variable, const std::string &path)
{
    char *absolute = realpath(path.c_str(), nullptr);
    setenv(variable, absolute != nullptr ? absolute : path.c_str(), 1);
    free(absolute);
}

int execute(const Program &program, char *const *words)
{
    execv(program.path.c_str(), words);
    // What the kernel does not know is a script to execvp(), whatever it is.
    if (errno == ENOEXEC && !program.elf)
        execvp(words[0], words);
    return errno;
}

} // namespace ntb
