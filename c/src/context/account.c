#include "context/account.h"

#include "base/error.h"

sb_status sb__account_fail(const struct sb__account *account, size_t bytes, const char *what,
                           sb_error *err) {
    return sb__fail(err, SB_ERR_CAP_REACHED, "%zu more bytes of %s would exceed the cap of %zu",
                    bytes, what, account->cap);
}
