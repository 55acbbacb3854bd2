// SPDX-License-Identifier: BSD-3-Clause
#include "shim/slots.hpp"

#include <cstdint>
#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ntb::verbs::shim
{
namespace
{

#if defined(__x86_64__)
constexpr std::uint32_t call_slot = R_X86_64_JUMP_SLOT, data_slot = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr std::uint32_t call_slot = R_AARCH64_JUMP_SLOT, data_slot = R_AARCH64_GLOB_DAT;
#else
#error "which relocations fill in the addresses of functions?"
#endif

constexpr std::size_t most_slots = 8;

struct Search {
    const char *file;
    const Slot *slots;
    std::size_t n;
    int outcome;
};

// What the dynamic section says, as far as it is wanted.
struct Tables {
    const ElfW(Sym) *symbols = nullptr;
    const char *names = nullptr;
    const ElfW(Rela) * relocations[2] = {nullptr, nullptr};
    std::size_t bytes[2] = {0, 0};
};

Tables tables_of(const dl_phdr_info &file, const ElfW(Dyn) * dynamic)
{
    // The linker has added the base, but where it may not write there.
    const auto address = [&](const ElfW(Dyn) & entry) {
        return entry.d_un.d_ptr < file.dlpi_addr ? entry.d_un.d_ptr + file.dlpi_addr
                                                 : entry.d_un.d_ptr;
    };
    Tables tables;
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            tables.symbols = reinterpret_cast<const ElfW(Sym) *>(address(*dynamic));
            break;
        case DT_STRTAB:
            tables.names = reinterpret_cast<const char *>(address(*dynamic));
            break;
        case DT_JMPREL:
            tables.relocations[0] = reinterpret_cast<const ElfW(Rela) *>(address(*dynamic));
            break;
        case DT_PLTRELSZ:
            tables.bytes[0] = dynamic->d_un.d_val;
            break;
        case DT_RELA:
            tables.relocations[1] = reinterpret_cast<const ElfW(Rela) *>(address(*dynamic));
            break;
        case DT_RELASZ:
            tables.bytes[1] = dynamic->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return tables;
}

void **find_slot(const dl_phdr_info &file, const Tables &tables, const Slot &slot)
{
    for (int i = 0; i < 2; ++i) {
        const ElfW(Rela) *const first = tables.relocations[i];
        for (std::size_t k = 0; first && k < tables.bytes[i] / sizeof(*first); ++k) {
            const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(first[k].r_info));
            const auto symbol = static_cast<std::uint32_t>(ELF64_R_SYM(first[k].r_info));
            if ((type != call_slot && type != data_slot) || symbol == 0)
                continue;
            const char *const name = tables.names + tables.symbols[symbol].st_name;
            if (std::strcmp(name, slot.name) == 0 ||
                (slot.other_name && std::strcmp(name, slot.other_name) == 0))
                return reinterpret_cast<void **>(file.dlpi_addr + first[k].r_offset);
        }
    }
    return nullptr;
}

// The part that is read-only once its addresses are filled in.
bool is_sealed(const dl_phdr_info &file, const void *slot)
{
    const auto address = reinterpret_cast<std::uintptr_t>(slot);
    for (int i = 0; i < file.dlpi_phnum; ++i) {
        const ElfW(Phdr) &part = file.dlpi_phdr[i];
        const std::uintptr_t begin = file.dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_GNU_RELRO && address >= begin && address < begin + part.p_memsz)
            return true;
    }
    return false;
}

bool store(const dl_phdr_info &file, void **slot, void *function)
{
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    void *const begin =
        reinterpret_cast<void *>(reinterpret_cast<std::uintptr_t>(slot) & ~(page - 1));
    const bool sealed = is_sealed(file, slot);
    if (sealed && mprotect(begin, page, PROT_READ | PROT_WRITE) != 0)
        return false;
    __atomic_store_n(slot, function, __ATOMIC_RELEASE);
    if (sealed)
        mprotect(begin, page, PROT_READ);
    return true;
}

bool is_inside(const dl_phdr_info &file, const void *at)
{
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    for (int i = 0; i < file.dlpi_phnum; ++i) {
        const ElfW(Phdr) &part = file.dlpi_phdr[i];
        const std::uintptr_t begin = file.dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_LOAD && address >= begin && address < begin + part.p_memsz)
            return true;
    }
    return false;
}

// A slot that is bound by its first call leads into the file itself until then, to what binds it.
// Who called that would have the replacement overwritten.
void *original_of(const dl_phdr_info &file, void *const *place, const Slot &slot)
{
    if (!is_inside(file, *place))
        return *place;
    void *bound = dlsym(RTLD_NEXT, slot.name);
    if (!bound && slot.other_name)
        bound = dlsym(RTLD_NEXT, slot.other_name);
    return bound ? bound : *place;
}

int replace_in(const dl_phdr_info &file, const Search &search)
{
    const ElfW(Dyn) *dynamic = nullptr;
    for (int i = 0; i < file.dlpi_phnum; ++i)
        if (file.dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic =
                reinterpret_cast<const ElfW(Dyn) *>(file.dlpi_addr + file.dlpi_phdr[i].p_vaddr);
    if (!dynamic || search.n > most_slots)
        return -1;
    const Tables tables = tables_of(file, dynamic);
    void **places[most_slots];
    for (std::size_t i = 0; i < search.n; ++i) {
        places[i] =
            tables.symbols && tables.names ? find_slot(file, tables, search.slots[i]) : nullptr;
        if (!places[i])
            return -1;
    }
    // Originals first: a replacement may be called at once.
    for (std::size_t i = 0; i < search.n; ++i) {
        void *const original = original_of(file, places[i], search.slots[i]);
        std::memcpy(search.slots[i].original, &original, sizeof(original));
    }
    for (std::size_t i = 0; i < search.n; ++i) {
        if (store(file, places[i], search.slots[i].replacement))
            continue;
        while (i-- > 0) {
            void *original;
            std::memcpy(&original, search.slots[i].original, sizeof(original));
            store(file, places[i], original);
        }
        return -1;
    }
    return 1;
}

int visit(dl_phdr_info *file, std::size_t, void *context)
{
    auto &search = *static_cast<Search *>(context);
    const char *const slash = file->dlpi_name ? std::strrchr(file->dlpi_name, '/') : nullptr;
    const char *const name = slash ? slash + 1 : file->dlpi_name;
    if (!name || std::strncmp(name, search.file, std::strlen(search.file)) != 0)
        return 0;
    search.outcome = replace_in(*file, search);
    return 1;
}

} // namespace

int replace(const char *file, const Slot *slots, std::size_t n)
{
    Search search = {file, slots, n, 0};
    dl_iterate_phdr(visit, &search);
    return search.outcome;
}

} // namespace ntb::verbs::shim
