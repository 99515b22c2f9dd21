-- Processes of the version before write rows without the column: the database sets it, whoever writes.
CREATE FUNCTION "set_written_table"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Without its connection the foreign key refuses the row.
  NEW."written_table" := coalesce((
    SELECT lower(c."table_prefix" || coalesce(NEW."destination_table", NEW."name"))
    FROM "connections" c WHERE c."id" = NEW."connection_id"), '');
  RETURN NEW;
END $$;--> statement-breakpoint
CREATE FUNCTION "rename_written_tables"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE "connection_streams" SET "written_table" = '' WHERE "connection_id" = NEW."id";
  RETURN NULL;
END $$;--> statement-breakpoint
UPDATE "connection_streams" s SET "written_table" = lower(c."table_prefix" || coalesce(s."destination_table", s."name"))
FROM "connections" c WHERE c."id" = s."connection_id";--> statement-breakpoint
CREATE TRIGGER "connection_streams_written_table"
  BEFORE INSERT OR UPDATE OF "connection_id", "name", "destination_table", "written_table" ON "connection_streams"
  FOR EACH ROW EXECUTE FUNCTION "set_written_table"();--> statement-breakpoint
CREATE TRIGGER "connections_written_tables" AFTER UPDATE OF "table_prefix" ON "connections"
  FOR EACH ROW WHEN (NEW."table_prefix" IS DISTINCT FROM OLD."table_prefix")
  EXECUTE FUNCTION "rename_written_tables"();
