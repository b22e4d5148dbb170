-- The reader's own tables.
CREATE TABLE product (id BIGINT PRIMARY KEY, stock BIGINT NOT NULL);
CREATE TABLE orders (product BIGINT NOT NULL, token BIGINT NOT NULL);
INSERT INTO product VALUES (123, 100);
