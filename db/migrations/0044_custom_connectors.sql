CREATE TABLE "custom_connectors" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"name" text NOT NULL,
	"display_name" text NOT NULL,
	"description" text NOT NULL,
	"icon" text,
	"documentation_url" text,
	"manifest" text NOT NULL,
	"components" text,
	"files" jsonb,
	"manifest_url" text,
	"components_url" text,
	"etag" text,
	"digest" text NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"outline" jsonb NOT NULL,
	"created_by" uuid,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"revision" integer DEFAULT 1 NOT NULL,
	CONSTRAINT "custom_connectors_name_form" CHECK ("custom_connectors"."name" ~ '^custom\.[a-z][a-z0-9_]{0,49}$'),
	CONSTRAINT "custom_connectors_counts" CHECK ("custom_connectors"."version" >= 1 and "custom_connectors"."revision" >= 1),
	CONSTRAINT "custom_connectors_address" CHECK ("custom_connectors"."components_url" is null or "custom_connectors"."manifest_url" is not null)
);
--> statement-breakpoint
ALTER TABLE "custom_connectors" ADD CONSTRAINT "custom_connectors_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "custom_connectors" ADD CONSTRAINT "custom_connectors_created_by_users_id_fk" FOREIGN KEY ("created_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "custom_connectors_name" ON "custom_connectors" USING btree ("account_id","name");