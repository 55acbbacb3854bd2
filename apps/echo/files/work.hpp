// SPDX-License-Identifier: BSD-3-Clause
// What the queues of mode file share with each other and with the main lcore: what is to be sent,
// what came of it, where to put what comes.
#ifndef ECHO_FILES_WORK_HPP
#define ECHO_FILES_WORK_HPP

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace echo
{

/// A file or a folder to be sent.
struct FileJob {
    std::string path; ///< no symbolic link at its end
    std::string name; ///< as the peer gets it
    bool folder;
};

/// Finds what is to be sent: a file; or a folder and all regular files and folders below it,
/// nothing through symbolic links.
/// @param skipped  how many links, devices, pipes and sockets were left out
/// @return empty, or one line that says what is wrong
std::string find_jobs(const std::string &path, std::vector<FileJob> &jobs, uint64_t &skipped);

/// Any thread. Locked once or twice a file, never for a message.
class FileWork
{
public:
    FileWork() = default;
    ~FileWork();
    FileWork(const FileWork &) = delete;
    FileWork &operator=(const FileWork &) = delete;

    /// Chooses the folder for what the peer sends; until then nothing is received. Only while no
    /// lcore runs. @return empty, or one line that says what is wrong
    std::string set_folder(const std::string &path);
    const std::string &folder() const { return folder_; }
    int folder_fd() const { return folder_fd_; } ///< -1: none is chosen

    void add(std::vector<FileJob> jobs);
    /// The next job, or none.
    std::optional<FileJob> take();
    /// A job that was taken and not ended: it will be the next one.
    void put_back(FileJob job);
    /// A job that was taken has come to its end. @param error  empty: the peer has it
    void ended(const std::string &error);

    /// Nothing waits and nothing is taken.
    bool idle();
    /// What failed since the last call, as one line; empty: nothing did.
    std::string take_failures();

    /// A line for the person, and its reader.
    void note(std::string line);
    std::vector<std::string> take_notes();

private:
    std::mutex lock_;
    std::deque<FileJob> waiting_;
    uint64_t taken_ = 0;
    uint64_t failed_ = 0;
    std::string first_failure_;
    std::vector<std::string> notes_;
    std::string folder_;
    int folder_fd_ = -1;
};

} // namespace echo

#endif
