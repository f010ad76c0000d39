"""What operators remember: immutable sorted segments and the layouts built of them."""
