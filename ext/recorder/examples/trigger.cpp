// SPDX-License-Identifier: MIT
// Pulls a recorder's trigger: trigger PATH TEXT, with a socket or with trace_marker as PATH.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

class Trigger {
public:
    // Once, before the loop. The trigger does nothing if no recorder runs.
    explicit Trigger(const std::string &path)
    {
        if (path.find("trace_marker") != std::string::npos) {
            said = open(path.c_str(), O_WRONLY | O_CLOEXEC);
            return;
        }
        sockaddr_un to{};
        to.sun_family = AF_UNIX;
        path.copy(to.sun_path, sizeof(to.sun_path) - 1);
        said = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (connect(said, reinterpret_cast<sockaddr *>(&to), sizeof(to)) != 0) {
            close(said);
            said = -1;
        }
    }
    Trigger(const Trigger &) = delete;
    Trigger &operator=(const Trigger &) = delete;
    ~Trigger()
    {
        if (said >= 0)
            close(said);
    }

    // In the loop: it does not block.
    bool pull(const char *text) const
    {
        const auto len = std::strlen(text);
        return said >= 0 && write(said, text, len) == static_cast<ssize_t>(len);
    }

private:
    int said = -1;
};

int main(int argc, char **argv)
{
    return argc == 3 && Trigger(argv[1]).pull(argv[2]) ? 0 : 1;
}
