// SPDX-License-Identifier: BSD-3-Clause
#include "files/work.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <utility>

#include "files/wire.hpp"

namespace fs = std::filesystem;

namespace echo
{

namespace
{

// Unread reports are bounded: a peer decides how many there are.
constexpr size_t most_notes = 256;

std::string complaint(const fs::path &path, const std::error_code &error)
{
    return path.string() + ": " + error.message();
}

/// @return empty, or one line that says what is wrong
std::string add_job(const fs::path &path, const std::string &name, bool folder,
                    std::vector<FileJob> &jobs)
{
    if (!file::name_is_safe(name))
        return path.string() + ": a name that cannot be sent";
    jobs.push_back({path.string(), name, folder});
    return {};
}

std::string walk(const fs::path &top, const std::string &name, std::vector<FileJob> &jobs,
                 uint64_t &skipped)
{
    std::error_code error;
    fs::recursive_directory_iterator at(top, error);
    while (!error && at != fs::end(at)) {
        const fs::file_status status = at->symlink_status(error);
        if (error)
            break;
        const bool folder = fs::is_directory(status);
        if (folder || fs::is_regular_file(status)) {
            const std::string below = at->path().lexically_relative(top).string();
            std::string wrong = add_job(at->path(), name + "/" + below, folder, jobs);
            if (!wrong.empty())
                return wrong;
        } else {
            ++skipped;
        }
        at.increment(error);
    }
    return error ? complaint(top, error) : std::string();
}

} // namespace

std::string find_jobs(const std::string &path, std::vector<FileJob> &jobs, uint64_t &skipped)
{
    std::error_code error;
    fs::path named = fs::absolute(path, error).lexically_normal();
    if (!named.has_filename())
        named = named.parent_path(); // "folder/"
    const fs::path real = fs::canonical(path, error);
    if (error)
        return complaint(path, error);
    const fs::file_status status = fs::status(real, error);
    if (error)
        return complaint(path, error);
    const bool folder = fs::is_directory(status);
    if (!folder && !fs::is_regular_file(status))
        return path + " is no file and no folder";
    const std::string name = named.filename().string();
    std::string wrong = add_job(real, name, folder, jobs);
    return wrong.empty() && folder ? walk(real, name, jobs, skipped) : wrong;
}

FileWork::~FileWork()
{
    if (folder_fd_ >= 0)
        close(folder_fd_);
}

std::string FileWork::set_folder(const std::string &path)
{
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return path + ": " + std::strerror(errno);
    if (folder_fd_ >= 0)
        close(folder_fd_);
    folder_fd_ = fd;
    folder_ = path;
    return {};
}

void FileWork::add(std::vector<FileJob> jobs)
{
    const std::lock_guard held(lock_);
    for (FileJob &job : jobs)
        waiting_.push_back(std::move(job));
}

std::optional<FileJob> FileWork::take()
{
    const std::lock_guard held(lock_);
    if (waiting_.empty())
        return std::nullopt;
    FileJob job = std::move(waiting_.front());
    waiting_.pop_front();
    ++taken_;
    return job;
}

void FileWork::put_back(FileJob job)
{
    const std::lock_guard held(lock_);
    waiting_.push_front(std::move(job));
    --taken_;
}

void FileWork::ended(const std::string &error)
{
    const std::lock_guard held(lock_);
    --taken_;
    if (error.empty())
        return;
    if (failed_++ == 0)
        first_failure_ = error;
}

bool FileWork::idle()
{
    const std::lock_guard held(lock_);
    return waiting_.empty() && taken_ == 0;
}

std::string FileWork::take_failures()
{
    const std::lock_guard held(lock_);
    std::string text = std::move(first_failure_);
    if (failed_ > 1)
        text += ", and " + std::to_string(failed_ - 1) + " more failed";
    failed_ = 0;
    first_failure_.clear();
    return text;
}

void FileWork::note(std::string line)
{
    const std::lock_guard held(lock_);
    if (notes_.size() < most_notes)
        notes_.push_back(std::move(line));
    else
        notes_.back() = "(more happened than was shown)";
}

std::vector<std::string> FileWork::take_notes()
{
    const std::lock_guard held(lock_);
    return std::exchange(notes_, {});
}

} // namespace echo
